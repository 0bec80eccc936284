"""RoIAlign of rotated boxes: RoIs (N, 6) = (index of the image, x, y, w, h, angle in radians), in its pixels."""

import torch
import torch.nn.functional as F
from torch import Tensor

from vit_plugin.detection.recompute import add_gradients, wide
from vit_plugin.detection.roi import sample_grids
from vit_plugin.errors import ConfigError


def roi_align_rotated_forward(input: Tensor, rois: Tensor, output: Tensor, pooled_height: int, pooled_width: int,
                              spatial_scale: float, sampling_ratio: int, aligned: bool, clockwise: bool) -> None:
    """Fill ``output`` (N, C, h, w) with the mean of bilinear samples in every bin (arXiv:1703.06870, Sec. 3).

    The bins turn with the box. A sample up to a pixel outside of the map (B, C, H, W) takes the value at its border,
    and further out it is 0. With ``sampling_ratio=0`` a RoI without an area has no samples, and gives 0.

    Raises:
        ConfigError: if a width or height is negative and ``aligned``.
    """
    output.copy_(_pooled(wide(input), wide(rois), (pooled_height, pooled_width), spatial_scale, sampling_ratio,
                         aligned, clockwise))


def roi_align_rotated_backward(grad_output: Tensor, rois: Tensor, grad_input: Tensor, pooled_height: int,
                               pooled_width: int, spatial_scale: float, sampling_ratio: int, aligned: bool,
                               clockwise: bool) -> None:
    """Add to ``grad_input`` (B, C, H, W)."""
    size = pooled_height, pooled_width
    add_gradients(lambda input: _pooled(input, wide(rois), size, spatial_scale, sampling_ratio, aligned, clockwise),
                  [torch.zeros_like(grad_input)], grad_output, [grad_input])


def _pooled(input: Tensor, rois: Tensor, size: tuple[int, int], scale: float, ratio: int, aligned: bool,
            clockwise: bool) -> Tensor:
    image, box, angle = rois[:, 0].long(), rois[:, 1:5] * scale, rois[:, 5] * (1 - 2 * clockwise)
    if aligned and (box[:, 2:] < 0).any():
        raise ConfigError('RoIAlignRotated: a RoI has a negative width or height; give boxes (x, y, w, h, angle).')
    center, sides = box[:, :2] - 0.5 * aligned, box[:, 2:] if aligned else box[:, 2:].clamp(min=1)
    # The angle turns the y-axis towards the x-axis: against the clock in an image.
    turn = torch.stack([angle.cos(), angle.sin(), -angle.sin(), angle.cos()], dim=1).unflatten(1, (2, 2))
    output = input.new_zeros(len(rois), input.shape[1], *size)
    for group, grid in sample_grids(sides.flip(1), size, ratio):
        steps = [(torch.arange(bins * samples, device=rois.device, dtype=rois.dtype) + 0.5) / (bins * samples) - 0.5
                 for bins, samples in zip(size, grid, strict=True)]
        y, x = torch.meshgrid(*steps, indexing='ij')
        for number in image[group].unique().tolist():
            chosen = group & (image == number)
            places = torch.stack([x, y], dim=-1) * sides[chosen, None, None]  # (n, h * down, w * across, 2)
            places = places @ turn[chosen, None].mT + center[chosen, None, None]
            samples = _samples(input[number], places)
            output[chosen] = F.avg_pool2d(samples, grid)
    return output


def _samples(image: Tensor, places: Tensor) -> Tensor:
    """Bilinear samples (n, C, h, w) of a map (C, H, W) at places (n, h, w, 2) = (x, y)."""
    last = places.new_tensor(image.shape[:0:-1]) - 1
    inside = ((places >= -1) & (places <= last + 1)).all(-1)
    shares = 2 * places / last.clamp(min=1) - 1  # from -1 to 1 over the map
    values = F.grid_sample(image[None], shares.flatten(0, 1)[None], padding_mode='border', align_corners=True)
    return values[0].unflatten(1, places.shape[:2]).transpose(0, 1) * inside[:, None]
