import math

import pytest
import torch
from bilinear import assert_same_with_gradients, sample

from vit_plugin.errors import ConfigError

SCALE = 0.5
# One inside, one larger than the map, one in the second image partly outside, one smaller than a pixel.
ROIS = torch.tensor([[0, 6.1, 5.2, 7.4, 4.1, 0.4], [0, 8, 5, 30, 25, -2], [1, 2.3, 9.1, 9.5, 7.3, 4],
                     [1, 5.2, 5.1, 0.7, 0.5, 1]], dtype=torch.float64)


def images() -> torch.Tensor:
    return torch.randn(2, 3, 6, 8, dtype=torch.float64)


def roi_align(input, rois, size, ratio: int, aligned: bool, clockwise: bool) -> torch.Tensor:
    """By the definition: each sample in the middle of its part of a straight box, which is turned around its middle."""
    (high, wide), output = input.shape[2:], input.new_zeros(len(rois), input.shape[1], *size)
    for n, (image, *box) in enumerate(rois.tolist()):
        x, y, w, h = (value * SCALE for value in box[:4])
        x, y = (x - 0.5, y - 0.5) if aligned else (x, y)
        w, h = (w, h) if aligned else (max(w, 1), max(h, 1))
        angle = box[4] if clockwise else -box[4]
        down, across = ratio or math.ceil(h / size[0]), ratio or math.ceil(w / size[1])
        for i in range(size[0]):
            for j in range(size[1]):
                for k in range(down):
                    for m in range(across):
                        b = h * ((i + (k + 0.5) / down) / size[0] - 0.5)
                        a = w * ((j + (m + 0.5) / across) / size[1] - 0.5)
                        column = x + a * math.cos(angle) - b * math.sin(angle)
                        row = y + a * math.sin(angle) + b * math.cos(angle)
                        if -1 <= row <= high and -1 <= column <= wide:
                            at = [torch.tensor(value, dtype=input.dtype) for value in (
                                min(max(row, 0), high - 1), min(max(column, 0), wide - 1))]
                            output[n, :, i, j] += sample(input[int(image)], *at) / (down * across)
    return output


@pytest.mark.parametrize('clockwise', [True, False])
@pytest.mark.parametrize(('ratio', 'aligned'), [(0, True), (2, True), (2, False)])
def test_by_the_definition(ratio, aligned, clockwise):
    from mmcv.ops import roi_align_rotated
    settings = (2, 3), SCALE, ratio, aligned, clockwise
    assert_same_with_gradients(lambda x: roi_align_rotated(x, ROIS, *settings),
                               lambda x: roi_align(x, ROIS, (2, 3), ratio, aligned, clockwise), [images()])


def test_a_straight_roi_is_that_of_roi_align():
    from mmcv.ops import RoIAlign, RoIAlignRotated
    straight = torch.tensor([[0, 6., 5, 8, 4, 0], [1, 4, 7, 6, 2, 2 * math.pi]], dtype=torch.float64)
    corners = torch.tensor([[0, 2., 3, 10, 7], [1, 1, 6, 7, 8]], dtype=torch.float64)
    x = images()
    torch.testing.assert_close(RoIAlignRotated((2, 3), SCALE, 2)(x, straight), RoIAlign((2, 3), SCALE, 2)(x, corners))


def test_no_rois_and_rois_without_area():
    from mmcv.ops import RoIAlignRotated
    x = images().requires_grad_()
    assert RoIAlignRotated(2, SCALE)(x, ROIS[:0]).shape == (0, 3, 2, 2)
    output = RoIAlignRotated(2, SCALE)(x, ROIS * torch.tensor([1, 1, 1, 0, 1, 1]))
    output.sum().backward()
    assert not output.any()
    assert not x.grad.any()


def test_negative_sides_are_refused():
    from mmcv.ops import RoIAlignRotated
    with pytest.raises(ConfigError, match='negative width or height; give boxes'):
        RoIAlignRotated(2, SCALE)(images(), -ROIS)


@pytest.mark.parametrize('dtype', [torch.float32, torch.bfloat16, torch.float16])
def test_precisions(dtype):
    from mmcv.ops import RoIAlignRotated
    layer, rois = RoIAlignRotated(2, SCALE, 2), (4 * ROIS).round() / 4
    x = images().to(dtype).requires_grad_()
    output = layer(x, rois.to(dtype))
    output.float().square().sum().backward()
    assert output.dtype == x.grad.dtype == dtype
    tolerance = 1e-5 if dtype == torch.float32 else 1e-2
    torch.testing.assert_close(output.double(), layer(x.detach().double(), rois), rtol=tolerance, atol=tolerance)
