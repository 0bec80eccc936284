"""The adapter that makes a graph of a trained model."""

from copy import deepcopy
from pkgutil import resolve_name
from typing import Any

import torch
from torch import nn

from vit_plugin.errors import ConfigError
from vit_plugin.models.classifier import Classifier
from vit_plugin.models.protocol import Backbone
from vit_plugin.project import declared

from .deployed_boxes import DeployedRetinaNet
from .deployed_module import (
    Deployed,
    DeployedClassifier,
    DeployedFeatures,
    DeployedModule,
    DeployedSegmentor,
)


def deploy(model: nn.Module, dtype: str = 'float32') -> Deployed:
    """A copy of a trained model to export, in eval mode.

    Raises:
        ConfigError: if the model has another backbone than ours, or steps that cannot be exported.
    """
    backbone = getattr(model, 'backbone', None)
    if not isinstance(backbone, Backbone):
        raise ConfigError(
            f'model.backbone: {type(backbone).__name__} is not one of vit_plugin, and only those '
            'can be exported.'
        )
    network = torch.bfloat16 if dtype == 'bfloat16' else torch.float32
    return _kind(model)(deepcopy(model), network).eval().requires_grad_(False)


# Adapters by the model's part and, where that part decides, the name of its class. Projects add
# theirs.
KINDS: dict[tuple[str, str | None], Any] = {
    ('head', None): DeployedClassifier,
    ('decode_head', None): DeployedSegmentor,
    ('bbox_head', 'RetinaHead'): DeployedRetinaNet,
}


def _kind(model: nn.Module) -> type[Deployed]:
    """The adapter of a model.

    Raises:
        ConfigError: see :func:`deploy`.
    """
    if isinstance(model, Classifier):
        return DeployedModule if model.num_classes else DeployedFeatures
    for (part, name), adapter in {**declared('deployed'), **KINDS}.items():
        classes = type(getattr(model, part, None)).__mro__
        if hasattr(model, part) and (not name or name in (one.__name__ for one in classes)):
            return resolve_name(adapter) if isinstance(adapter, str) else adapter
    raise ConfigError(
        f'model: {type(model).__name__} selects boxes or masks in steps that cannot be exported; '
        'classifiers, segmentors, EoMT, LW-DETR, RF-DETR, DETR, Conditional DETR and RetinaNet can '
        'be exported.'
    )
