import pytest
import torch
from bilinear import sample
from rejection import rejects

from vit_plugin.models.layers.deformable_attention import DeformableAttention, deformable_attention

SIZES = [(4, 5), (2, 3)]


def inputs(dtype: torch.dtype = torch.float64) -> list[torch.Tensor]:
    """Value, locations (also outside) and weights: two images, seven queries, two heads, three
    points.
    """
    return [
        torch.randn(2, 26, 2, 3, dtype=dtype).requires_grad_(),
        (torch.rand(2, 7, 2, 2, 3, 2, dtype=dtype) * 2 - 0.5).requires_grad_(),
        torch.rand(2, 7, 2, 2, 3, dtype=dtype).requires_grad_(),
    ]


def by_definition(value, locations, weights):
    """Arxiv 2010.04159, Eq. 3: per head the weighted sum of bilinear samples from all maps."""
    maps = value.split([h * w for h, w in SIZES], dim=1)
    return torch.stack(
        [
            torch.cat(
                [
                    sum(
                        (
                            sample(
                                maps[k][b, :, head].T.reshape(-1, h, w),
                                *reversed(
                                    (locations[b, :, head, k] * torch.tensor([w, h]) - 0.5).unbind(
                                        -1
                                    )
                                ),
                            )
                            * weights[b, :, head, k, :, None]
                        ).sum(1)
                        for k, (h, w) in enumerate(SIZES)
                    )
                    for head in range(value.shape[2])
                ],
                dim=1,
            )
            for b in range(len(value))
        ]
    )


def test_values_and_gradients():
    tensors = inputs()
    ours, theirs = deformable_attention(tensors[0], SIZES, *tensors[1:]), by_definition(*tensors)
    torch.testing.assert_close(ours, theirs, atol=1e-10, rtol=1e-10)
    weight = torch.randn_like(ours)
    for one, other in zip(
        *(torch.autograd.grad((out * weight).sum(), tensors) for out in (ours, theirs)), strict=True
    ):
        assert other.any()
        torch.testing.assert_close(one, other, atol=1e-10, rtol=1e-10)


@pytest.mark.parametrize('dtype', [torch.float64, torch.float32])
def test_far_away_is_nothing(dtype):
    value, locations, weights = inputs(dtype)
    with torch.no_grad():
        locations.mul_(1e30)
    assert not deformable_attention(value, SIZES, locations, weights).any()


def test_half_precision_keeps_its_dtype():
    tensors = [tensor.detach().bfloat16().requires_grad_() for tensor in inputs()]
    out = deformable_attention(tensors[0], SIZES, *tensors[1:])
    out.sum().backward()
    assert out.dtype == tensors[0].grad.dtype == torch.bfloat16
    assert all(tensor.grad.isfinite().all() and tensor.grad.any() for tensor in tensors)


def test_a_new_one_looks_around_the_query():
    """As in the authors' Figure 2: eight heads in eight directions, the points in a row."""
    layer = DeformableAttention(16, num_heads=8, num_levels=2, num_points=3)
    offsets = layer.sampling_offsets.bias.unflatten(0, (8, 2, 3, 2))
    assert not layer.sampling_offsets.weight.any()
    expected = torch.tensor(
        [(1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, -1)]
    ).float()
    for level in range(2):
        for point in range(3):
            torch.testing.assert_close(
                offsets[:, level, point], (point + 1) * expected, atol=1e-5, rtol=0
            )


def test_what_cannot_work():
    with rejects('num_heads=3 does not divide the width 32 and the 16 channels'):
        DeformableAttention(32, num_heads=3, num_levels=1, value_ratio=0.5)
