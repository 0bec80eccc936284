"""Replaces ``mmcv._ext``. This module contains the ops, with mmcv's names and arguments.

The autograd functions of ``mmcv.ops`` pass tensors by position and numbers by name. They also allocate the buffers
that the ops fill. Any other name gives a function that raises an error with the remedy.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

from vit_plugin.detection.deform import (
    deform_conv_backward_input,
    deform_conv_backward_parameters,
    deform_conv_forward,
    modulated_deform_conv_backward,
    modulated_deform_conv_forward,
    ms_deform_attn_backward,
    ms_deform_attn_forward,
)
from vit_plugin.detection.focal_loss import (
    sigmoid_focal_loss_backward,
    sigmoid_focal_loss_forward,
    softmax_focal_loss_backward,
    softmax_focal_loss_forward,
)
from vit_plugin.detection.nms import bbox_overlaps, nms, nms_match, softnms
from vit_plugin.detection.roi import roi_align_backward, roi_align_forward, roi_pool_backward, roi_pool_forward
from vit_plugin.errors import ConfigError

__all__ = [
    'bbox_overlaps',
    'deform_conv_backward_input',
    'deform_conv_backward_parameters',
    'deform_conv_forward',
    'modulated_deform_conv_backward',
    'modulated_deform_conv_forward',
    'ms_deform_attn_backward',
    'ms_deform_attn_forward',
    'nms',
    'nms_match',
    'roi_align_backward',
    'roi_align_forward',
    'roi_pool_backward',
    'roi_pool_forward',
    'sigmoid_focal_loss_backward',
    'sigmoid_focal_loss_forward',
    'softmax_focal_loss_backward',
    'softmax_focal_loss_forward',
    'softnms',
]

def get_compiler_version() -> str:
    """MMEngine's runner logs this in its report of the environment."""
    return 'none: vit_plugin.detection'


get_compiling_cuda_version = get_compiler_version


def missing(name: str, *args: Any, **kwargs: Any) -> NoReturn:
    raise ConfigError(
        f"vit_plugin.detection has no stand-in for mmcv's op {name!r}: compile mmcv by `MMCV_WITH_OPS=1 pip install "
        '--no-build-isolation --no-deps --no-cache-dir --force-reinstall onedl-mmcv`, with the compiler set up as '
        'docs/detection.md says.')


def __getattr__(name: str) -> Callable[..., NoReturn]:
    # At import, mmcv asserts that every op exists, even if no model calls it.
    if name.startswith('_'):
        raise AttributeError(name)
    return partial(missing, name)
