"""Apply all passes that make inference faster on a device, and undo them."""

import torch
from torch import nn

from .channels_last import use_channels_last, use_contiguous
from .fold import fold, unfold
from .onednn import use_onednn, use_torch
from .twins import fuse_twins, unfuse_twins


def optimize(
    model: nn.Module, device: str | torch.device | None = None, frozen: bool = False
) -> nn.Module:
    """Make a model faster on its device, for inference.

    Names, parameters and state dict stay the same. The outputs stay the same up to rounding. On a
    CPU, standardized kernels and position tables are computed once (:mod:`.fold`), the parallel
    convolutions of RepVGG blocks are merged (:mod:`.twins`), oneDNN fuses the GELU of an MLP with
    its first layer where that is faster (:mod:`.onednn`), and a ResNet uses channels-last on some
    processors (:mod:`.channels_last`). On other devices, and in training mode, nothing changes.

    Args:
        model: the model, or any module that contains it. It is changed in place.
        device: the device where the model will run. Default: the device of its parameters.
        frozen: the parameters will not change, so no forward compares their values. Writes that
            autograd counts are still noticed. Writes that bypass it (``p.data.copy_``, a
            collective) are not.

    Returns:
        The model.
    """
    restore(model)
    device = torch.device(device or next(model.parameters(), torch.empty(0)).device)
    if device.type == 'cpu' and not model.training:
        use_channels_last(model)
        use_onednn(model)
        fold(model, frozen)
        fuse_twins(model, frozen)
    return model


def restore(model: nn.Module) -> nn.Module:
    """Undo :func:`optimize`, in place.

    Returns:
        The model.
    """
    unfold(model)
    unfuse_twins(model)
    use_torch(model)
    use_contiguous(model)
    return model
