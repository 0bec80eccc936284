"""Deformable attention, against the paper's equation written out in loops."""

import pytest
import torch
from bilinear import sample
from rejection import rejects

from vit_plugin.models.layers.deformable_attention import DeformableAttention, deformable_attention

SIZES = [(4, 5), (2, 3)]


def inputs(dtype: torch.dtype = torch.float64) -> list[torch.Tensor]:
    """Value, locations (some outside of the maps) and weights.

    For two images, seven queries, two heads, two maps and three points.
    """
    return [
        torch.randn(2, 26, 2, 3, dtype=dtype).requires_grad_(),
        (torch.rand(2, 7, 2, 2, 3, 2, dtype=dtype) * 2 - 0.5).requires_grad_(),
        torch.rand(2, 7, 2, 2, 3, dtype=dtype).requires_grad_(),
    ]


def by_equation(value, locations, weights):
    """Arxiv 2010.04159, Eq. 3: per head the weighted sum of bilinear samples from all maps."""
    maps = value.split([h * w for h, w in SIZES], dim=1)
    output = []
    for b in range(len(value)):
        heads = []
        for head in range(value.shape[2]):
            total = 0
            for k, (h, w) in enumerate(SIZES):
                image = maps[k][b, :, head].T.reshape(-1, h, w)
                x, y = (locations[b, :, head, k] * torch.tensor([w, h]) - 0.5).unbind(-1)
                total = total + (sample(image, y, x) * weights[b, :, head, k, :, None]).sum(1)
            heads.append(total)
        output.append(torch.cat(heads, dim=1))
    return torch.stack(output)


def test_values_and_gradients_equal_the_equation():
    tensors = inputs()
    ours, theirs = deformable_attention(tensors[0], SIZES, *tensors[1:]), by_equation(*tensors)
    torch.testing.assert_close(ours, theirs, atol=1e-10, rtol=1e-10)
    weight = torch.randn_like(ours)
    our_grads, their_grads = (
        torch.autograd.grad((out * weight).sum(), tensors) for out in (ours, theirs)
    )
    for our_grad, their_grad in zip(our_grads, their_grads, strict=True):
        assert their_grad.any()
        torch.testing.assert_close(our_grad, their_grad, atol=1e-10, rtol=1e-10)


@pytest.mark.parametrize('dtype', [torch.float64, torch.float32])
def test_locations_far_outside_give_zero(dtype):
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


def test_initial_points_surround_the_query():
    """Each of the eight heads has its points in a row in one of eight directions."""
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


def test_heads_that_do_not_divide_the_channels_raise():
    with rejects('num_heads=3 does not divide the width 32 and the 16 channels'):
        DeformableAttention(32, num_heads=3, num_levels=1, value_ratio=0.5)
