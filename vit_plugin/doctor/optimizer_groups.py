"""The learning rate and weight decay of each parameter, as a run would set them."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from mmengine.optim import build_optim_wrapper
from torch import nn

# Arguments of optimizers that need parameters on a real device. The model is on the meta device.
DEVICE_OPTIONS = ('fused', 'foreach', 'capturable')


class ParameterSettings(NamedTuple):
    """The optimizer settings of a parameter.

    Attributes:
        name: name of the parameter.
        rate: its learning rate at schedule factor 1.
        decay: its weight decay.
    """

    name: str
    rate: float
    decay: float


def read_parameter_settings(
    model: nn.Module, optim_wrapper: Mapping[str, Any]
) -> list[ParameterSettings]:
    """The parameters of a model that its optimizer has, with their settings.

    Args:
        model: the model, which needs no weights.
        optim_wrapper: the section ``optim_wrapper``.

    Raises:
        Exception: whatever the optimizer's constructor raises.
    """
    optimizer = {
        name: value
        for name, value in optim_wrapper['optimizer'].items()
        if name not in DEVICE_OPTIONS
    }
    built: Any = build_optim_wrapper(
        model,
        {
            'type': 'OptimWrapper',  # mixed precision does not change the settings
            'optimizer': optimizer,
            'paramwise_cfg': optim_wrapper.get('paramwise_cfg'),
            'constructor': optim_wrapper.get('constructor', 'DefaultOptimWrapperConstructor'),
        },
    )
    names = {parameter: name for name, parameter in model.named_parameters()}
    return [
        ParameterSettings(names[parameter], group['lr'], group.get('weight_decay') or 0.0)
        for group in built.optimizer.param_groups
        for parameter in group['params']
        if parameter in names  # a custom constructor may add parameters of its own
    ]
