"""Mixed precision on any device."""

import logging
from typing import Any

import torch
from mmengine.device import get_device
from mmengine.logging import print_log
from mmengine.optim import AmpOptimWrapper as AcceleratorAmpOptimWrapper
from mmengine.optim import OptimWrapper

from vit_plugin.errors import ConfigError
from vit_plugin.registry import OPTIM_WRAPPERS

from .runtime_info import KeepsGradNorm

DTYPES = {'bfloat16': torch.bfloat16, 'float16': torch.float16}


@OPTIM_WRAPPERS.register_module()
class AmpOptimWrapper(KeepsGradNorm, AcceleratorAmpOptimWrapper):
    """MMEngine's ``AmpOptimWrapper``, also for a CPU, and with loss scaling only where float16 needs it.

    Args:
        dtype: ``'bfloat16'`` or ``'float16'``; None takes bfloat16 where the device computes in it, as a
            CPU does, else float16.
        loss_scale: for float16: ``'dynamic'``, a fixed scale, or arguments of ``torch.amp.GradScaler``.
        **kwargs: of MMEngine's ``OptimWrapper``.

    Raises:
        ConfigError: for another dtype, or float16 on a CPU.
    """

    def __init__(self, dtype: str | torch.dtype | None = None, loss_scale: str | float | dict = 'dynamic',
                 **kwargs: Any) -> None:
        # The parent's constructor refuses a machine without an accelerator, so its state is set here.
        OptimWrapper.__init__(self, **kwargs)
        device = get_device()
        if dtype is None:
            old_gpu = device == 'cuda' and not torch.cuda.is_bf16_supported(including_emulation=False)
            dtype = 'float16' if old_gpu else 'bfloat16'
        dtype = str(dtype).removeprefix('torch.')
        if dtype not in DTYPES or (dtype, device) == ('float16', 'cpu'):
            raise ConfigError(f'optim_wrapper: dtype={dtype!r} is not possible on the device {device!r}; '
                              'choose bfloat16, or leave it out.')
        self.cast_dtype = DTYPES[dtype]
        scaler = {'init_scale': loss_scale} if isinstance(loss_scale, (int, float)) else (
            {} if loss_scale == 'dynamic' else dict(loss_scale))
        self.loss_scaler = torch.amp.GradScaler(device, enabled=dtype == 'float16', **scaler)
        self._scale_update_param = loss_scale if isinstance(loss_scale, (int, float)) else None
        fast = not torch.backends.mkldnn.is_available() or torch.ops.mkldnn._is_mkldnn_bf16_supported()
        if device == 'cpu' and not fast:
            print_log('This CPU has no instructions for bfloat16: training in it is many times slower than in float32.',
                      'current', logging.WARNING)
