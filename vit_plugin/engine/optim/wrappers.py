"""The optimizer wrappers: one for the precision of the parameters, one for mixed precision.

:mod:`vit_plugin.engine.step` has what both share: gradient clipping, skipped steps, accumulation.
"""

import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Annotated, Any, Literal

import mmengine.optim
import torch
from mmengine.device import get_device
from mmengine.logging import print_log
from pydantic import Field
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from typing_extensions import Required, TypedDict

from vit_plugin.arguments.fields import Positive, PositiveInt
from vit_plugin.errors import ConfigError
from vit_plugin.passes import processor
from vit_plugin.registry import OPTIM_WRAPPERS

from ..step import BaseOptimWrapper

AMP_DTYPES = {'bfloat16': torch.bfloat16, 'float16': torch.float16}


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


class ScalerOptions(TypedDict, total=False):
    """Arguments of ``torch.amp.GradScaler``."""

    init_scale: Positive
    growth_factor: Annotated[float, Field(gt=1)]
    backoff_factor: Annotated[float, Field(gt=0, lt=1)]
    growth_interval: PositiveInt


@OPTIM_WRAPPERS.register_module()
class OptimWrapper(BaseOptimWrapper):
    """MMEngine's ``OptimWrapper``, but it reads no gradient norm from the GPU in every step.

    It also works for sharded models.
    """

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        accumulative_counts: PositiveInt = 1,
        clip_grad: Clip | None = None,
    ) -> None:
        super().__init__(optimizer, accumulative_counts, clip_grad)


@OPTIM_WRAPPERS.register_module()
class AmpOptimWrapper(BaseOptimWrapper, mmengine.optim.AmpOptimWrapper):
    """MMEngine's ``AmpOptimWrapper`` that also works on a CPU. Only float16 uses loss scaling.

    Args:
        dtype: ``'bfloat16'`` or ``'float16'``. None uses bfloat16 if the device computes in it, as
            a CPU does, and otherwise float16.
        loss_scale: for float16: ``'dynamic'``, a fixed scale, or arguments of
            ``torch.amp.GradScaler``.
        fused_attention: whether torch may choose its fused kernels of attention. On a CPU, their
            backward in bfloat16 is slower than plain matrix products for fewer than about 100
            tokens, and faster for more (docs/speed.md).
        optimizer, accumulative_counts, clip_grad: see MMEngine's ``OptimWrapper``.

    Raises:
        ConfigError: if the dtype is unknown, or if it is float16 on a CPU.
    """

    def __init__(
        self,
        dtype: Literal['bfloat16', 'float16'] | torch.dtype | None = None,
        loss_scale: Literal['dynamic'] | Positive | ScalerOptions = 'dynamic',
        fused_attention: bool = True,
        *,
        optimizer: torch.optim.Optimizer,
        accumulative_counts: PositiveInt = 1,
        clip_grad: Clip | None = None,
    ) -> None:
        # The parent's constructor requires an accelerator, so its state is set here.
        mmengine.optim.OptimWrapper.__init__(self, optimizer, accumulative_counts, clip_grad)
        device = get_device()
        if dtype is None:
            lacks_bfloat16 = device == 'cuda' and not torch.cuda.is_bf16_supported(
                including_emulation=False
            )
            dtype = 'float16' if lacks_bfloat16 else 'bfloat16'
        dtype = str(dtype).removeprefix('torch.')
        if dtype not in AMP_DTYPES or (dtype == 'float16' and device == 'cpu'):
            raise ConfigError(
                f'optim_wrapper: dtype={dtype!r} is not possible on the device {device!r}; '
                'choose bfloat16, or leave it out.'
            )
        self.cast_dtype, self.fused_attention = AMP_DTYPES[dtype], fused_attention
        if isinstance(loss_scale, (int, float)):
            scaler = {'init_scale': loss_scale}
        else:
            scaler = {} if loss_scale == 'dynamic' else dict(loss_scale)
        self.loss_scaler = torch.amp.GradScaler(device, enabled=dtype == 'float16', **scaler)
        # The parent passes it to `GradScaler.update`, which then keeps a fixed scale.
        self._scale_update_param = loss_scale if isinstance(loss_scale, (int, float)) else None
        if device == 'cpu' and processor.computes_in_bfloat16() is False:
            print_log(
                'This CPU has no instructions for bfloat16: training in it is many times slower '
                'than in float32.',
                'current',
                logging.WARNING,
            )

    @contextmanager
    def optim_context(self, model: nn.Module) -> Iterator[None]:
        """The context of a forward: autocast, and the choice of attention kernels."""
        with super().optim_context(model), self._attention_kernels():
            yield

    def backward(self, loss: Tensor, **kwargs: Any) -> None:
        """See the parent. Activation checkpointing runs the forward again here.

        This second forward needs the same attention kernels as the first.
        """
        with self._attention_kernels():
            super().backward(loss, **kwargs)

    def _attention_kernels(self) -> AbstractContextManager[None]:
        return nullcontext() if self.fused_attention else sdpa_kernel(SDPBackend.MATH)
