"""How a classifier is written for timm and transformers, and compared with what they compute."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from vit_plugin.deploy.hub.hub_folder import HubFolder, hub_class_names, hub_outputs
from vit_plugin.deploy.hub.libraries import LIBRARIES
from vit_plugin.deploy.hub.timm_folder import read_by_timm, timm_folders, timm_with_classes
from vit_plugin.deploy.hub.transformers_fields import transformers_with_classes
from vit_plugin.deploy.hub.transformers_folder import read_by_transformers, transformers_folders
from vit_plugin.deploy.hub.written_task import WrittenTask, read_by_vit_plugin
from vit_plugin.errors import ConfigError
from vit_plugin.inference.trained_model import TrainedModel
from vit_plugin.models import VisionTransformer
from vit_plugin.models.backbones.wrapped import WrappedBackbone

LINEAR_HEAD = ('layers.head.weight', 'layers.head.bias')  # a head that is one linear layer
# Functions by library: the folders of a ViT, and a config with the names of classes.
FOLDERS_OF_VIT = {'timm': timm_folders, 'hf': transformers_folders}
WITH_CLASSES = {'timm': timm_with_classes, 'hf': transformers_with_classes}


def classifier_folders(
    trained: TrainedModel, library: str, pixels: Mapping[str, Any]
) -> Iterator[HubFolder]:
    """The candidate folders of a classifier, see :class:`WrittenTask`.

    Raises:
        ConfigError: if the library has no such classifier.
    """
    model, backbone = trained.model, trained.model.backbone
    if isinstance(backbone, VisionTransformer):
        yield from FOLDERS_OF_VIT[library](trained, pixels)
        return
    class_name = type(backbone).__name__
    if not isinstance(backbone, WrappedBackbone):
        raise ConfigError(f'its backbone is a {class_name}, whose own names --to vit_plugin keeps')
    if backbone.library != library:
        raise ConfigError(f'its {class_name} holds a model of {LIBRARIES[backbone.library].name}')
    head = model.head.state_dict() if model.with_head else {}
    if backbone.out_type != 'pooled' or model.with_neck or {*head} != {*LINEAR_HEAD}:
        name = LIBRARIES[library].name
        raise ConfigError(f'{name} has no such classifier on the maps of its {class_name}')
    config, weights = backbone.with_classifier(*(head[name] for name in LINEAR_HEAD))
    config = WITH_CLASSES[library](config, hub_class_names(trained), pixels)
    yield HubFolder(config, weights)


def _images_of_native_size(trained: TrainedModel, size: Sequence[int]) -> Tensor:
    """Random images to compare. ``size`` is for detectors, see :class:`WrittenTask`."""
    backbone = trained.model.backbone
    return torch.randn(4, backbone.in_channels, *backbone.img_size)


WRITTEN_CLASSIFIER = WrittenTask(
    folders=classifier_folders,
    outputs=hub_outputs,
    images=_images_of_native_size,
    readers={'timm': (read_by_timm,), 'hf': (read_by_vit_plugin, read_by_transformers)},
)
