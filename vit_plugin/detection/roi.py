"""Pooling of regions of interest: RoIs (N, 5) = (index of the image, x1, y1, x2, y2) in pixels of the image.

``input`` is a map (B, C, H, W). ``output`` (N, C, h, w) contains zeros before a function fills it.
"""

import torch
from torch import Tensor
from torchvision.ops import roi_align

from vit_plugin.detection.recompute import add_gradients, wide
from vit_plugin.errors import ConfigError

MAX = 0  # mmcv's number for this mode of pooling


def roi_align_forward(input: Tensor, rois: Tensor, output: Tensor, argmax_y: Tensor, argmax_x: Tensor,
                      aligned_height: int, aligned_width: int, spatial_scale: float, sampling_ratio: int,
                      pool_mode: int, aligned: bool) -> None:
    """RoIAlign (arXiv:1703.06870, Sec. 3): mean of bilinear samples in every bin.

    Raises:
        ConfigError: for the other mode, the maximum of the samples.
    """
    if pool_mode == MAX:
        raise ConfigError("RoIAlign: vit_plugin.detection has no pool_mode='max'; take 'avg', or compile mmcv.")
    output.copy_(roi_align(wide(input), wide(rois), (aligned_height, aligned_width), spatial_scale, sampling_ratio,
                           aligned))


def roi_align_backward(grad_output: Tensor, rois: Tensor, argmax_y: Tensor, argmax_x: Tensor, grad_input: Tensor,
                       aligned_height: int, aligned_width: int, spatial_scale: float, sampling_ratio: int,
                       pool_mode: int, aligned: bool) -> None:
    """Add to ``grad_input`` (B, C, H, W)."""
    add_gradients(lambda input: roi_align(input, wide(rois), (aligned_height, aligned_width), spatial_scale,
                                          sampling_ratio, aligned),
                  [torch.zeros_like(grad_input)], grad_output, [grad_input])


def roi_pool_forward(input: Tensor, rois: Tensor, output: Tensor, argmax: Tensor, pooled_height: int,
                     pooled_width: int, spatial_scale: float) -> None:
    """RoIPool (arXiv:1504.08083, Sec. 2.1): maximum of the pixels that each bin touches.

    A RoI ends after its last pixel, at x2 + 1, and is not rounded. torchvision's ``roi_pool`` differs in this.
    ``argmax`` (N, C, h, w) gets the index of the pixel. An empty bin has the value 0 and the index -1.
    """
    argmax.fill_(-1)
    if not len(rois):
        return
    width = input.shape[3]
    top, bottom = _bins(rois[:, 2], rois[:, 4], spatial_scale, pooled_height, input.shape[2])
    left, right = _bins(rois[:, 1], rois[:, 3], spatial_scale, pooled_width, width)
    pixels = input.flatten(2)
    image = rois[:, 0].long()[:, None, None, None]
    channel = torch.arange(input.shape[1], device=input.device)[:, None, None]
    # Loop over the pixels of a bin, with all bins at once. Bins have few pixels, and there are many bins.
    for down in range(int((bottom - top).max())):
        for across in range(int((right - left).max())):
            y, x = (top + down)[:, None, :, None], (left + across)[:, None, None, :]
            inside = (y < bottom[:, None, :, None]) & (x < right[:, None, None, :])
            index = torch.where(inside, y * width + x, 0)  # (N, 1, h, w)
            value = pixels[image, channel, index]  # (N, C, h, w)
            better = inside & ((value > output) | (argmax < 0))
            output.copy_(torch.where(better, value, output))
            argmax.copy_(torch.where(better, index, argmax))


def roi_pool_backward(grad_output: Tensor, rois: Tensor, argmax: Tensor, grad_input: Tensor, pooled_height: int,
                      pooled_width: int, spatial_scale: float) -> None:
    """Add to ``grad_input`` (B, C, H, W)."""
    pooled = argmax >= 0
    roi, channel = pooled.nonzero(as_tuple=True)[:2]
    grad_input.flatten(2).index_put_((rois[roi, 0].long(), channel, argmax[pooled].long()), grad_output[pooled],
                                     accumulate=True)


def _bins(first: Tensor, last: Tensor, spatial_scale: float, bins: int, size: int) -> tuple[Tensor, Tensor]:
    """Start (inclusive) and end (exclusive) of each bin of each RoI along one axis, each (N, bins)."""
    start, end = first[:, None] * spatial_scale, (last[:, None] + 1) * spatial_scale
    step, number = (end - start) / bins, torch.arange(bins, device=first.device)
    return ((number * step + start).floor().long().clamp(0, size),
            ((number + 1) * step + start).ceil().long().clamp(0, size))
