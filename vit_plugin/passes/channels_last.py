"""Let a ResNet compute on channels-last maps (NHWC in memory), for inference on a CPU."""

import torch
from torch import nn
from torch.distributed.tensor import DTensor

from vit_plugin.models import ResNetEmbed

from . import processor

MARK = 'is_channels_last'  # attribute that marks a stem converted by this pass
CHANNELS_LAST_INSTRUCTION_SETS = ('AMX',)  # instruction sets on which it is faster (docs/speed.md)


def use_channels_last(model: nn.Module) -> None:
    """Let a ResNet compute on channels-last maps, where that is faster.

    A convolution takes the format from its kernel, so only kernels are converted. Names, shapes and
    values stay the same.
    """
    if processor.instruction_set() in CHANNELS_LAST_INSTRUCTION_SETS:
        convert_stems(model)


def convert_stems(model: nn.Module) -> None:
    """Convert the stems to channels-last, on any processor."""
    for stem in model.modules():
        # Sharded parameters are left alone.
        if isinstance(stem, ResNetEmbed) and not any(
            isinstance(parameter, DTensor) for parameter in stem.parameters()
        ):
            stem.backbone.to(memory_format=torch.channels_last)
            stem.__dict__[MARK] = True


def use_contiguous(model: nn.Module) -> None:
    """Undo :func:`use_channels_last`. A memory format that was set elsewhere stays."""
    for module in model.modules():
        if module.__dict__.pop(MARK, False):
            module.backbone.to(memory_format=torch.contiguous_format)
