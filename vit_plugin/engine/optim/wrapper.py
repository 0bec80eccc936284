"""The optimizer wrapper, and the arguments that its kinds share."""

from typing import Literal

import torch
from typing_extensions import Required, TypedDict

from vit_plugin.arguments.fields import Positive, PositiveInt
from vit_plugin.registry import OPTIM_WRAPPERS

from ..step import BaseOptimWrapper


class ClipNorm(TypedDict, total=False):
    """``clip_grad`` by the norm of all gradients: arguments of torch's ``clip_grad_norm_``."""

    type: Literal['norm']
    max_norm: Required[Positive]
    norm_type: Positive | Literal['inf']
    error_if_nonfinite: bool
    foreach: bool | None


class ClipValue(TypedDict, total=False):
    """``clip_grad`` of each value: arguments of torch's ``clip_grad_value_``."""

    type: Required[Literal['value']]
    clip_value: Required[Positive]
    foreach: bool | None


Clip = ClipNorm | ClipValue


@OPTIM_WRAPPERS.register_module()
class OptimWrapper(BaseOptimWrapper):
    """MMEngine's ``OptimWrapper`` without waiting for gradient norms, also for sharded models."""

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        accumulative_counts: PositiveInt = 1,
        clip_grad: Clip | None = None,
    ) -> None:
        super().__init__(optimizer, accumulative_counts, clip_grad)
