"""The same model in timm and transformers, if they have its architecture.

The library's config is written from the sizes of the model. Equality is then tested: the folder is
read back, and outputs are compared.
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

# Tolerances relative to the largest output: for float32, and for models with more rounding, such as
# timm's hybrids, whose different eps a deep ResNet amplifies.
OUTPUT_TOLERANCE, LOOSE = 1e-4, 1e-2
FLOOR_CROP = 'vit_plugin.FloorCenterCrop'
CENTER_CROPS = ('CenterCrop', FLOOR_CROP)
LINEAR_HEAD = ('layers.head.weight', 'layers.head.bias')  # a head that is one linear layer


class Library(NamedTuple):
    """A library that reads a folder of the hub.

    Attributes:
        name: its name on the hub.
        folders: (model, preprocessing) -> candidate folders, most likely first.
        classes: (config, class names, preprocessing) -> a config with these.
        readers: functions of the folder and its config that return outputs; None if the library is
            missing.
        example: Python code that reads the folder.
        crop: the center crop that starts at the same pixel as the library's.
    """

    name: str
    folders: Callable[[TrainedModel, Mapping[str, Any]], Iterator[HubFolder]]
    classes: Callable[[Mapping[str, Any], Sequence[str], Mapping[str, Any]], dict[str, Any]]
    readers: tuple[Callable[[Path, Mapping[str, Any]], Outputs | None], ...]
    example: str
    crop: str


def read_by_ours(folder: Path, config: Mapping[str, Any]) -> Outputs:
    """The outputs of this package with a folder of another library."""
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
    """The candidate folders of a library for the same model, most likely first.

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
    """How models of a task are written for other libraries and compared.

    Attributes:
        folders: see :func:`folders_of`.
        outputs: (model, normalized images) -> outputs.
        images: (model, height, width) -> random normalized images to compare.
    """

    folders: Callable[[TrainedModel, str, Mapping[str, Any]], Iterator[HubFolder]]
    outputs: Callable[[TrainedModel, Tensor], Tensor]
    images: Callable[[TrainedModel, Sequence[int]], Tensor]


WRITTEN_TASKS = {
    'classification': WrittenTask(_classifier_folders, hub_outputs, _images_of_native_size),
    'detection': WrittenTask(_detector_folders, boxes_of, _image_of_size),
}


def with_crop(settings: Any, crop: str) -> Any:
    """Replace center crops in settings by this one."""
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
    """The tolerance of outputs, relative to the largest.

    Args:
        trained: the model.
        dtype: dtype of the written weights, if it differs.
    """
    stem = getattr(trained.model.backbone, 'patch_embed', None)
    is_plain = stem is None or type(stem).__name__ == PLAIN_STEM
    return OUTPUT_TOLERANCE if is_plain and dtype in (None, 'float32') else LOOSE
