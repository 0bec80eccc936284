"""RoIAlign as a replacement of mmcv's op, see :mod:`.ext`.

Regions of interest are (N, 5) = (image index, x1, y1, x2, y2) in pixels of the image.
``input`` is a map (B, C, H, W). ``output`` (N, C, h, w) contains zeros before a function fills it.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torchvision.ops import roi_align

from vit_plugin.detection.op_gradients import add_gradients, promoted_to_float32
from vit_plugin.errors import ConfigError

MAX_MODE = 0  # mmcv's number for this mode of pooling


def roi_align_forward(
    input: Tensor,
    rois: Tensor,
    output: Tensor,
    argmax_y: Tensor,
    argmax_x: Tensor,
    pool_mode: int,
    **geometry,
) -> None:
    """RoIAlign (arXiv:1703.06870, Sec. 3): mean of bilinear samples in every bin.

    ``geometry`` has ``aligned_height`` and ``aligned_width`` (h, w), ``spatial_scale``,
    ``sampling_ratio`` and ``aligned``.

    Raises:
        ConfigError: for the other mode, the maximum of the samples.
    """
    if pool_mode == MAX_MODE:
        raise ConfigError(
            "RoIAlign: vit_plugin.detection has no pool_mode='max'; take 'avg', or compile mmcv."
        )
    output.copy_(_align_function(rois, **geometry)(promoted_to_float32(input)))


def roi_align_backward(
    grad_output: Tensor,
    rois: Tensor,
    argmax_y: Tensor,
    argmax_x: Tensor,
    grad_input: Tensor,
    pool_mode: int,
    **geometry,
) -> None:
    """Add to ``grad_input`` (B, C, H, W)."""
    zeros = torch.zeros_like(grad_input)
    add_gradients(_align_function(rois, **geometry), [zeros], grad_output, [grad_input])


def _align_function(
    rois: Tensor, aligned_height: int, aligned_width: int, **geometry
) -> Callable[[Tensor], Tensor]:
    """RoIAlign of these regions, as a function of the map."""
    size = aligned_height, aligned_width
    return lambda input: roi_align(input, promoted_to_float32(rois), size, **geometry)
