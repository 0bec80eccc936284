"""RoIAlign equals its definition, with gradients."""

import math

import pytest
import torch
from bilinear import assert_same_with_gradients, sample
from rejection import rejects

SCALE = 0.5
# Inside the map; larger than the map; partly outside, in the second image; smaller than a pixel.
ROIS = torch.tensor(
    [
        [0, 2.3, 1.1, 9.7, 8.2],
        [0, 0, 0, 30, 25],
        [1, -3.1, 4.2, 6.4, 15.5],
        [1, 5.2, 5.1, 5.9, 5.6],
    ],
    dtype=torch.float64,
)


def images() -> torch.Tensor:
    return torch.randn(2, 3, 6, 8, dtype=torch.float64)


def roi_align_by_definition(input, rois, size, ratio: int, aligned: bool) -> torch.Tensor:
    """The mean of samples on a grid in each bin.

    Samples up to a pixel outside of the map are taken from its border; others are zero.
    """
    (high, wide), output = input.shape[2:], []
    for image, *corners in rois.tolist():
        shift = 0.5 if aligned else 0
        x1, y1, x2, y2 = (corner * SCALE - shift for corner in corners)
        height, width = (y2 - y1, x2 - x1) if aligned else (max(y2 - y1, 1), max(x2 - x1, 1))
        down, across = ratio or math.ceil(height / size[0]), ratio or math.ceil(width / size[1])
        y = y1 + (torch.arange(size[0] * down, dtype=input.dtype) + 0.5) * height / (size[0] * down)
        x = x1 + (torch.arange(size[1] * across, dtype=input.dtype) + 0.5) * width / (
            size[1] * across
        )
        y, x = torch.meshgrid(y, x, indexing='ij')
        inside = (y >= -1) & (y <= high) & (x >= -1) & (x <= wide)
        values = (
            sample(input[int(image)], y.clamp(0, high - 1), x.clamp(0, wide - 1))
            * inside[..., None]
        )
        bins = values.unflatten(0, (size[0], down)).unflatten(2, (size[1], across))
        output.append(bins.mean((1, 3)).permute(2, 0, 1))
    return torch.stack(output)


@pytest.mark.parametrize('aligned', [True, False])
@pytest.mark.parametrize('ratio', [0, 2])
def test_roi_align_equals_the_definition(ratio, aligned):
    from mmcv.ops import RoIAlign

    layer = RoIAlign((2, 3), SCALE, ratio, 'avg', aligned)
    assert_same_with_gradients(
        lambda x: layer(x, ROIS),
        lambda x: roi_align_by_definition(x, ROIS, (2, 3), ratio, aligned),
        [images()],
    )


def test_pool_mode_max_raises():
    from mmcv.ops import RoIAlign

    with rejects("no pool_mode='max'; take 'avg', or compile mmcv"):
        RoIAlign(2, pool_mode='max')(images(), ROIS)


def small_roi_align() -> torch.nn.Module:
    from mmcv.ops import RoIAlign

    return RoIAlign(2)


def test_no_rois_give_no_gradient():
    x = images().requires_grad_()
    output = small_roi_align()(x, ROIS[:0])
    assert output.shape == (0, 3, 2, 2)
    output.sum().backward()
    assert not x.grad.any()


def test_a_roi_without_area_gives_zero_and_no_gradient():
    x = images().requires_grad_()
    output = small_roi_align()(x, torch.tensor([[0, 4, 4, 3, 3]], dtype=torch.float64))
    output.sum().backward()
    assert not output.any()
    assert not x.grad.any()


def test_bfloat16_keeps_its_dtype():
    x = images().bfloat16().requires_grad_()
    rois = ROIS.round()
    output = small_roi_align()(x, rois.bfloat16())
    output.float().square().sum().backward()
    assert output.dtype == x.grad.dtype == torch.bfloat16
    torch.testing.assert_close(
        output.double(), small_roi_align()(x.detach().double(), rois), rtol=1e-2, atol=1e-2
    )
