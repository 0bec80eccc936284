"""All useful passes in one call."""

from collections.abc import Collection
from typing import Literal

import torch
from torch import nn

from .fold import fold, unfold
from .onednn import use_onednn, use_torch


def optimize(model: nn.Module, device: str | torch.device | None = None, training: bool | None = None,
             linear: Literal['auto', 'onednn', 'torch'] = 'auto') -> nn.Module:
    """Make a model faster on its device.

    Names, parameters and state dict stay the same. The outputs stay the same up to rounding. On a CPU:

    - oneDNN computes the linear layers if that is faster on this processor.
    - Without training, standardised kernels and position tables are computed once.

    On other devices there is nothing to do yet.

    With oneDNN, a hook on ``fc1`` of an MLP sees the activated output, and a hook on ``act`` is not called. Tools that
    look for the exact class ``nn.Linear`` (``torch.fx``, ``torch.ao`` quantization) do not find these layers. Call
    :func:`restore` before either.

    Args:
        model: the model, or any module that contains it. It is changed in place.
        device: the device where the model will run. Default: the device of its parameters.
        training: whether the model will be trained. Default: whether it is in training mode.
        linear: who computes the linear layers. ``'auto'`` follows the table ``onednn.CHOICES`` for this processor,
            ``'onednn'`` uses oneDNN for float32 and bfloat16, and ``'torch'`` changes nothing.

    Returns:
        The model.
    """
    restore(model)
    device = torch.device(device or next(model.parameters(), torch.empty(0)).device)
    training = model.training if training is None else training
    if device.type == 'cpu':
        if linear != 'torch':
            both: dict[torch.dtype, Collection[str]] = dict.fromkeys(
                (torch.float32, torch.bfloat16), ('linear', 'gelu'))
            use_onednn(model, both if linear == 'onednn' else None)
        if not training:
            fold(model)
    return model


def restore(model: nn.Module) -> nn.Module:
    """Undo :func:`optimize`, in place.

    Returns:
        The model.
    """
    unfold(model)
    use_torch(model)
    return model
