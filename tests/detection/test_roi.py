import math

import pytest
import torch
from bilinear import assert_same_with_gradients, sample

from vit_plugin.errors import ConfigError

SCALE = 0.5
# One inside, one that is longer than the map, one in the second image partly outside, one smaller than a pixel.
ROIS = torch.tensor([[0, 2.3, 1.1, 9.7, 8.2], [0, 0, 0, 30, 25], [1, -3.1, 4.2, 6.4, 15.5], [1, 5.2, 5.1, 5.9, 5.6]],
                    dtype=torch.float64)


def images() -> torch.Tensor:
    return torch.randn(2, 3, 6, 8, dtype=torch.float64)


def roi_align(input, rois, size, ratio: int, aligned: bool) -> torch.Tensor:
    """By the definition: samples in the middles of a grid in each bin; a coordinate is moved to the border from up
    to a pixel outside, and further out there is zero."""
    (high, wide), output = input.shape[2:], []
    for image, *corners in rois.tolist():
        x1, y1, x2, y2 = (corner * SCALE - 0.5 * aligned for corner in corners)
        height, width = (y2 - y1, x2 - x1) if aligned else (max(y2 - y1, 1), max(x2 - x1, 1))
        down, across = ratio or math.ceil(height / size[0]), ratio or math.ceil(width / size[1])
        y = y1 + (torch.arange(size[0] * down, dtype=input.dtype) + 0.5) * height / (size[0] * down)
        x = x1 + (torch.arange(size[1] * across, dtype=input.dtype) + 0.5) * width / (size[1] * across)
        y, x = torch.meshgrid(y, x, indexing='ij')
        inside = (y >= -1) & (y <= high) & (x >= -1) & (x <= wide)
        values = sample(input[int(image)], y.clamp(0, high - 1), x.clamp(0, wide - 1)) * inside[..., None]
        bins = values.unflatten(0, (size[0], down)).unflatten(2, (size[1], across))
        output.append(bins.mean((1, 3)).permute(2, 0, 1))
    return torch.stack(output)


@pytest.mark.parametrize('aligned', [True, False])
@pytest.mark.parametrize('ratio', [0, 2])
def test_roi_align(ratio, aligned):
    from mmcv.ops import RoIAlign
    layer = RoIAlign((2, 3), SCALE, ratio, 'avg', aligned)
    assert_same_with_gradients(lambda x: layer(x, ROIS), lambda x: roi_align(x, ROIS, (2, 3), ratio, aligned),
                               [images()])


def test_the_maximum_of_samples_is_a_named_error():
    from mmcv.ops import RoIAlign
    with pytest.raises(ConfigError, match="no pool_mode='max'; take 'avg', or compile mmcv"):
        RoIAlign(2, pool_mode='max')(images(), ROIS)


def roi_pool(input, rois, size) -> torch.Tensor:
    """By the definition: the largest of the pixels that a bin touches, zero if there are none."""
    output = input.new_zeros(len(rois), input.shape[1], *size)
    for n, (image, *corners) in enumerate(rois.tolist()):
        x1, y1, x2, y2 = corners[0] * SCALE, corners[1] * SCALE, (corners[2] + 1) * SCALE, (corners[3] + 1) * SCALE
        for i in range(size[0]):
            for j in range(size[1]):
                top, bottom = (math.floor(y1 + i * (y2 - y1) / size[0]), math.ceil(y1 + (i + 1) * (y2 - y1) / size[0]))
                left, right = (math.floor(x1 + j * (x2 - x1) / size[1]), math.ceil(x1 + (j + 1) * (x2 - x1) / size[1]))
                pixels = input[int(image), :, max(top, 0):max(bottom, 0), max(left, 0):max(right, 0)].flatten(1)
                if pixels.numel():
                    output[n, :, i, j] = pixels.amax(1)
    return output


def test_roi_pool():
    from mmcv.ops import RoIPool
    layer = RoIPool((2, 3), SCALE)
    assert_same_with_gradients(lambda x: layer(x, ROIS), lambda x: roi_pool(x, ROIS, (2, 3)), [images()])


def layers() -> dict:
    from mmcv.ops import RoIAlign, RoIPool
    return dict(mean=RoIAlign(2), pool=RoIPool(2))


@pytest.mark.parametrize('kind', ['mean', 'pool'])
def test_no_rois(kind):
    x = images().requires_grad_()
    output = layers()[kind](x, ROIS[:0])
    assert output.shape == (0, 3, 2, 2)
    output.sum().backward()
    assert not x.grad.any()


@pytest.mark.parametrize('kind', ['mean', 'pool'])
def test_a_roi_without_area_gives_zero_and_no_gradient(kind):
    x = images().requires_grad_()
    output = layers()[kind](x, torch.tensor([[0, 4, 4, 3, 3]], dtype=torch.float64))
    output.sum().backward()
    assert not output.any()
    assert not x.grad.any()


@pytest.mark.parametrize('kind', ['mean', 'pool'])
def test_bfloat16(kind):
    x = images().bfloat16().requires_grad_()
    rois = ROIS.round()
    output = layers()[kind](x, rois.bfloat16())
    output.float().square().sum().backward()
    assert output.dtype == x.grad.dtype == torch.bfloat16
    torch.testing.assert_close(output.double(), layers()[kind](x.detach().double(), rois), rtol=1e-2, atol=1e-2)
