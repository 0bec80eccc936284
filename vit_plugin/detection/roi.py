"""RoI pooling: regions of interest (N, 5) = (image index, x1, y1, x2, y2) in pixels of the image.

``input`` is a map (B, C, H, W). ``output`` (N, C, h, w) contains zeros before a function fills it.
"""

import torch
from torch import Tensor
from torchvision.ops import roi_align

from vit_plugin.detection.op_gradients import add_gradients, wide
from vit_plugin.errors import ConfigError

MAX = 0  # mmcv's number for this mode of pooling


def roi_align_forward(
    input: Tensor,
    rois: Tensor,
    output: Tensor,
    argmax_y: Tensor,
    argmax_x: Tensor,
    aligned_height: int,
    aligned_width: int,
    spatial_scale: float,
    sampling_ratio: int,
    pool_mode: int,
    aligned: bool,
) -> None:
    """RoIAlign (arXiv:1703.06870, Sec. 3): mean of bilinear samples in every bin.

    Raises:
        ConfigError: for the other mode, the maximum of the samples.
    """
    if pool_mode == MAX:
        raise ConfigError(
            "RoIAlign: vit_plugin.detection has no pool_mode='max'; take 'avg', or compile mmcv."
        )
    output.copy_(
        roi_align(
            wide(input),
            wide(rois),
            (aligned_height, aligned_width),
            spatial_scale,
            sampling_ratio,
            aligned,
        )
    )


def roi_align_backward(
    grad_output: Tensor,
    rois: Tensor,
    argmax_y: Tensor,
    argmax_x: Tensor,
    grad_input: Tensor,
    aligned_height: int,
    aligned_width: int,
    spatial_scale: float,
    sampling_ratio: int,
    pool_mode: int,
    aligned: bool,
) -> None:
    """Add to ``grad_input`` (B, C, H, W)."""
    add_gradients(
        lambda input: roi_align(
            input,
            wide(rois),
            (aligned_height, aligned_width),
            spatial_scale,
            sampling_ratio,
            aligned,
        ),
        [torch.zeros_like(grad_input)],
        grad_output,
        [grad_input],
    )
