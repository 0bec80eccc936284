"""Pooling of regions of interest: RoIs (N, 5) = (index of the image, x1, y1, x2, y2) in pixels of the image.

``input`` is a map (B, C, H, W). ``output`` (N, C, h, w) contains zeros before a function fills it.
"""

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor
from torchvision.ops import roi_align

from vit_plugin.detection.recompute import add_gradients, wide

MAX = 0  # mmcv's number for this mode of pooling


def roi_align_forward(input: Tensor, rois: Tensor, output: Tensor, argmax_y: Tensor, argmax_x: Tensor,
                      aligned_height: int, aligned_width: int, spatial_scale: float, sampling_ratio: int,
                      pool_mode: int, aligned: bool) -> None:
    """RoIAlign (arXiv:1703.06870, Sec. 3): mean or maximum of bilinear samples in every bin.

    For the maximum, ``argmax_y`` and ``argmax_x`` (N, C, h, w) get the position of its sample. Positions count the
    samples of the whole RoI.
    """
    input, rois, size = wide(input), wide(rois), (aligned_height, aligned_width)
    if pool_mode != MAX:
        output.copy_(roi_align(input, rois, size, spatial_scale, sampling_ratio, aligned))
        return
    for group, grid in _sample_grids(_extent(rois, spatial_scale, aligned), size, sampling_ratio):
        fine = _fine_size(size, grid)
        samples = roi_align(input, rois[group], fine, spatial_scale, 1, aligned)
        values, index = F.max_pool2d(samples, grid, return_indices=True)
        output[group] = values.to(output.dtype)
        argmax_y[group] = (index // fine[1]).to(argmax_y.dtype)
        argmax_x[group] = (index % fine[1]).to(argmax_x.dtype)


def roi_align_backward(grad_output: Tensor, rois: Tensor, argmax_y: Tensor, argmax_x: Tensor, grad_input: Tensor,
                       aligned_height: int, aligned_width: int, spatial_scale: float, sampling_ratio: int,
                       pool_mode: int, aligned: bool) -> None:
    """Add to ``grad_input`` (B, C, H, W)."""
    rois, size = wide(rois), (aligned_height, aligned_width)

    def add(grad_output: Tensor, *arguments) -> None:
        add_gradients(lambda input: roi_align(input, *arguments), [torch.zeros_like(grad_input)], grad_output,
                      [grad_input])

    if pool_mode != MAX:
        add(grad_output, rois, size, spatial_scale, sampling_ratio, aligned)
        return
    for group, grid in _sample_grids(_extent(rois, spatial_scale, aligned), size, sampling_ratio):
        fine = _fine_size(size, grid)
        index = argmax_y[group].long() * fine[1] + argmax_x[group].long()
        samples = F.max_unpool2d(wide(grad_output[group]), index, grid, output_size=fine)
        add(samples, rois[group], fine, spatial_scale, 1, aligned)


def _fine_size(size: tuple[int, int], grid: tuple[int, int]) -> tuple[int, int]:
    # Smaller bins with one sample each have the same sample positions.
    return size[0] * grid[0], size[1] * grid[1]


def _sample_grids(extent: Tensor, size: tuple[int, int], sampling_ratio: int) -> Iterator[
        tuple[Tensor, tuple[int, int]]]:
    """Group RoIs by their number of samples per bin. Yields masks (N,) and the numbers of samples (down, across).

    Args:
        extent: height and width of each RoI on the map (N, 2).
        size: number of bins (h, w).
        sampling_ratio: number of samples along both sides of a bin. 0 means one for each pixel, rounded up. A RoI
            without an area then has no samples and is in no group.
    """
    grids = torch.full_like(extent, sampling_ratio) if sampling_ratio > 0 else (extent / extent.new_tensor(size)).ceil()
    for grid in grids.unique(dim=0):
        if (grid > 0).all():
            yield (grids == grid).all(1), tuple(grid.int().tolist())


def _extent(rois: Tensor, spatial_scale: float, aligned: bool) -> Tensor:
    x1, y1, x2, y2 = (rois[:, 1:] * spatial_scale - 0.5 * aligned).unbind(1)
    extent = torch.stack([y2 - y1, x2 - x1], dim=1)
    return extent if aligned else extent.clamp(min=1)


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
            place = torch.where(inside, y * width + x, 0)  # (N, 1, h, w)
            value = pixels[image, channel, place]  # (N, C, h, w)
            better = inside & ((value > output) | (argmax < 0))
            output.copy_(torch.where(better, value, output))
            argmax.copy_(torch.where(better, place, argmax))


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
