"""The same model in timm and in transformers, where they have its architecture.

A library's config is written by ours, from the sizes of the model. Whether it is the same model is
not derived but tried: the folder is read, and its outputs are compared.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from vit_plugin.deploy.deployed_module import relative_difference
from vit_plugin.errors import ConfigError
from vit_plugin.inference.load import load
from vit_plugin.inference.trained_model import TrainedModel
from vit_plugin.models import VisionTransformer
from vit_plugin.models.backbones.wrapped import WrappedBackbone

from .detector_folder import boxes_by_transformers, boxes_of, detector_folder
from .hub_folder import PLAIN_STEM, HubFolder, Outputs, hub_class_names, hub_outputs
from .timm_folder import read_by_timm, timm_classes, timm_folders
from .transformers_folder import (
    read_by_transformers,
    transformers_classes,
    transformers_folders,
)

# Shares of the largest output by which others may differ: of float32, and where more is rounded,
# as in timm's hybrids, whose eps of their own a deep ResNet makes more of.
OUTPUT_TOLERANCE, LOOSE = 1e-4, 1e-2
FLOOR_CROP = 'vit_plugin.FloorCenterCrop'
CENTER_CROPS = ('CenterCrop', FLOOR_CROP)
LINEAR_HEAD = ('layers.head.weight', 'layers.head.bias')  # a head that is one linear layer


class Library(NamedTuple):
    """A library that reads a folder of the hub.

    Attributes:
        name: its name on the hub.
        folders: model and pixels -> the folders that may be the same model, the likeliest first.
        classes: a config, the names of classes and the pixels -> a config with these.
        readers: the folder and its config -> outputs. None where the reader is not installed.
        example: how the folder is read, in Python.
        crop: the transform that cuts the middle of an image at the pixel where the library does.
    """

    name: str
    folders: Callable[[TrainedModel, Mapping[str, Any]], Iterator[HubFolder]]
    classes: Callable[[Mapping[str, Any], Sequence[str], Mapping[str, Any]], dict[str, Any]]
    readers: tuple[Callable[[Path, Mapping[str, Any]], Outputs | None], ...]
    example: str
    crop: str


def read_by_ours(folder: Path, config: Mapping[str, Any]) -> Outputs:
    """What this package computes with a folder of another library."""
    classifies = bool(config.get('id2label') or config.get('num_classes'))
    trained = load(folder, device='cpu', classify=classifies)
    return partial(WRITTEN_TASKS[trained.task].outputs, trained)


def read_by_any_of_transformers(folder: Path, config: Mapping[str, Any]) -> Outputs | None:
    """What transformers computes with a folder. None where it is not installed."""
    detects = config['architectures'][0].endswith('ForObjectDetection')
    return (boxes_by_transformers if detects else read_by_transformers)(folder, config)


LIBRARIES = {
    'timm': Library(
        'timm',
        timm_folders,
        timm_classes,
        (read_by_timm,),
        "import timm\n\nmodel = timm.create_model('{timm}', pretrained=True).eval()",
        'CenterCrop',
    ),
    'hf': Library(
        'transformers',
        transformers_folders,
        transformers_classes,
        (read_by_ours, read_by_any_of_transformers),
        "from transformers import pipeline\n\nprint(pipeline('{task}', '{name}')('photo.jpg'))",
        FLOOR_CROP,
    ),
}


def folders_of(trained: TrainedModel, form: str, pixels: Mapping[str, Any]) -> Iterator[HubFolder]:
    """The folders of a library that may be the same model, the likeliest first.

    Args:
        trained: the model, of one of :data:`WRITTEN_TASKS`.
        form: a key of :data:`LIBRARIES`.
        pixels: see :func:`~vit_plugin.deploy.hub.preprocessing.timm_data_config`.

    Raises:
        ConfigError: if there are none.
    """
    return WRITTEN_TASKS[trained.task].folders(trained, form, pixels)


def _classifier_folders(
    trained: TrainedModel, form: str, pixels: Mapping[str, Any]
) -> Iterator[HubFolder]:
    model, library = trained.model, LIBRARIES[form]
    backbone = model.backbone
    if isinstance(backbone, VisionTransformer):
        yield from library.folders(trained, pixels)
        return
    kind = type(backbone).__name__
    if not isinstance(backbone, WrappedBackbone):
        raise ConfigError(f'its backbone is a {kind}, whose own names --to vit_plugin keeps')
    if backbone.library != form:
        raise ConfigError(f'its {kind} holds a model of {LIBRARIES[backbone.library].name}')
    head = model.head.state_dict() if model.with_head else {}
    if backbone.out_type != 'pooled' or model.with_neck or {*head} != {*LINEAR_HEAD}:
        raise ConfigError(f'{library.name} has no such classifier on the maps of its {kind}')
    config, weights = backbone.with_classifier(*(head[name] for name in LINEAR_HEAD))
    yield HubFolder(library.classes(config, hub_class_names(trained), pixels), weights)


def _detector_folders(
    trained: TrainedModel, form: str, pixels: Mapping[str, Any]
) -> Iterator[HubFolder]:
    if form != 'hf':
        raise ConfigError(f'{LIBRARIES[form].name} has no detectors')
    yield detector_folder(trained)


def _images_of_native_size(trained: TrainedModel, size: Sequence[int]) -> Tensor:
    backbone = trained.model.backbone
    return torch.randn(4, backbone.in_channels, *backbone.img_size)


def _image_of_size(trained: TrainedModel, size: Sequence[int]) -> Tensor:
    return torch.randn(1, trained.model.backbone.in_channels, *size, dtype=torch.float64)


class WrittenTask(NamedTuple):
    """How models of a task are written for other libraries, and compared.

    Attributes:
        folders: see :func:`folders_of`.
        outputs: of a model for normalized images.
        images: a model, height and width -> random normalized images to compare outputs for.
    """

    folders: Callable[[TrainedModel, str, Mapping[str, Any]], Iterator[HubFolder]]
    outputs: Callable[[TrainedModel, Tensor], Tensor]
    images: Callable[[TrainedModel, Sequence[int]], Tensor]


WRITTEN_TASKS = {
    'classification': WrittenTask(_classifier_folders, hub_outputs, _images_of_native_size),
    'detection': WrittenTask(_detector_folders, boxes_of, _image_of_size),
}


def with_crop(settings: Any, crop: str) -> Any:
    """Settings whose crops of the middle of an image are this one."""
    if isinstance(settings, Mapping):
        found = {name: with_crop(value, crop) for name, value in settings.items()}
        is_crop = found.get('type') in CENTER_CROPS and {*found} == {'type', 'crop_size'}
        return dict(found, type=crop) if is_crop else found
    if isinstance(settings, (list, tuple)):
        return type(settings)(with_crop(value, crop) for value in settings)
    return settings


@torch.no_grad()
def difference(trained: TrainedModel, outputs: Outputs, size: Sequence[int]) -> float:
    """The largest difference of a library's outputs from the model's, relative to the largest.

    Images are random ones of the native size; of a detector of this height and width.
    """
    task = WRITTEN_TASKS[trained.task]
    images = task.images(trained, size)
    return relative_difference(outputs(images), task.outputs(trained, images))


def tolerance_of(trained: TrainedModel, dtype: str | None) -> float:
    """How far outputs may be apart, as a share of the largest.

    Args:
        trained: the model.
        dtype: that of the weights that are written, if it is another.
    """
    stem = getattr(trained.model.backbone, 'patch_embed', None)
    is_plain = stem is None or type(stem).__name__ == PLAIN_STEM
    return OUTPUT_TOLERANCE if is_plain and dtype in (None, 'float32') else LOOSE
