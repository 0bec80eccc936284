"""How models of a task are written for other libraries: what a task declares as ``written``.

The folder of a library is a candidate until the library's readers and the model give equal outputs.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, NamedTuple

import torch
from torch import Tensor

from vit_plugin.deploy.deployed_module import relative_difference
from vit_plugin.errors import ConfigError
from vit_plugin.inference.load import load
from vit_plugin.inference.trained_model import TrainedModel
from vit_plugin.task import task_declarations

from .hub_folder import HubFolder, OutputFunction

# (folder, its config) -> outputs; None if the library is missing.
FolderReader = Callable[[Path, Mapping[str, Any]], OutputFunction | None]


class WrittenTask(NamedTuple):
    """How models of a task are written for other libraries and compared.

    Attributes:
        folders: (model, library, preprocessing) -> candidate folders, most likely first. A
            ``ConfigError`` states why there are none. The library is a key of
            :data:`~vit_plugin.deploy.hub.libraries.LIBRARIES`, and the preprocessing is that of
            :func:`~vit_plugin.deploy.hub.preprocessing.timm_data_config`.
        outputs: (model, normalized images) -> outputs.
        images: (model, height, width) -> random normalized images to compare.
        readers: for each of the libraries, functions that read its folders; the last is the library
            itself, others are this package's.
        processor: transformers' image processor, unless it depends on the preprocessing.
    """

    folders: Callable[[TrainedModel, str, Mapping[str, Any]], Iterator[HubFolder]]
    outputs: Callable[[TrainedModel, Tensor], Tensor]
    images: Callable[[TrainedModel, Sequence[int]], Tensor]
    readers: Mapping[str, tuple[FolderReader, ...]]
    processor: str = ''


def written_task(trained: TrainedModel) -> WrittenTask:
    """How a model is written: what its task declares.

    Raises:
        ConfigError: if no other library has models of its task.
    """
    names = task_declarations('written')
    if trained.task not in names:
        raise ConfigError(f'this is a model of {trained.task}')
    task: WrittenTask = resolve_name(names[trained.task])
    return task


def read_by_vit_plugin(folder: Path, config: Mapping[str, Any]) -> OutputFunction:
    """The function that this package computes with a folder in the format of another library."""
    classifies = bool(config.get('id2label') or config.get('num_classes'))
    trained = load(folder, device='cpu', classify=classifies)
    return partial(written_task(trained).outputs, trained)


@torch.no_grad()
def difference(trained: TrainedModel, outputs: OutputFunction, size: Sequence[int]) -> float:
    """The largest difference of a library's outputs from the model's, relative to the largest.

    Args:
        trained: the model.
        outputs: the library's outputs for images.
        size: height and width of the random images for a detector. Other models get images of
            their native size.
    """
    task = written_task(trained)
    images = task.images(trained, size)
    return relative_difference(outputs(images), task.outputs(trained, images))
