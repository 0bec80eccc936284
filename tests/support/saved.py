"""Save models as their own libraries do, for tests of the names of weights in files."""

from argparse import Namespace
from pathlib import Path

import torch
from torch import nn


def saved(model: nn.Module, folder: Path) -> str:
    """Save a model's weights as its library does, MMEngine for ours. Returns the file's path."""
    library = type(model).__module__.partition('.')[0]
    return str(
        {'transformers': _transformers, 'timm': _timm}.get(library, _mmengine)(model, folder)
    )


def _transformers(model: nn.Module, folder: Path) -> Path:
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    model.save_pretrained(folder)
    return folder / 'model.safetensors'


def _timm(model: nn.Module, folder: Path) -> Path:
    from timm.utils import CheckpointSaver

    optimizer = torch.optim.SGD(model.parameters())
    CheckpointSaver(model, optimizer, Namespace(model='a'), checkpoint_dir=folder).save_checkpoint(
        0
    )
    return folder / 'last.pth.tar'


def _mmengine(model: nn.Module, folder: Path) -> Path:
    from mmengine.runner.checkpoint import get_state_dict, save_checkpoint

    file = folder / 'epoch_1.pth'
    save_checkpoint(dict(meta=dict(epoch=1), state_dict=get_state_dict(model)), str(file))
    return file
