"""Choose the adapter that turns a trained model into a graph."""

from copy import deepcopy
from pkgutil import resolve_name

import torch
from torch import nn

from vit_plugin.errors import ConfigError
from vit_plugin.inference.answered_task import has_part
from vit_plugin.models.classifier import Classifier
from vit_plugin.models.protocol import Backbone
from vit_plugin.project import declared
from vit_plugin.task import of_tasks

from .deployed_module import Deployed, DeployedFeatures, DeployedModule


def deploy(model: nn.Module, dtype: str = 'float32') -> Deployed:
    """A copy of a trained model to export, in eval mode.

    Raises:
        ConfigError: if the backbone is not ours, or if the model has operations that cannot be
            exported.
    """
    backbone = getattr(model, 'backbone', None)
    if not isinstance(backbone, Backbone):
        raise ConfigError(
            f'model.backbone: {type(backbone).__name__} is not one of vit_plugin, and only those '
            'can be exported.'
        )
    network = torch.bfloat16 if dtype == 'bfloat16' else torch.float32
    return _kind(model)(deepcopy(model), network).eval().requires_grad_(False)


def _kind(model: nn.Module) -> type[Deployed]:
    """The adapter of a model.

    Raises:
        ConfigError: see :func:`deploy`.
    """
    if isinstance(model, Classifier):
        return DeployedModule if model.num_classes else DeployedFeatures
    rows = {key: at for one in of_tasks('deployed').values() for key, at in one.items()}
    adapters = {**declared('deployed'), **rows}
    # Rows with a class come first; an attribute alone decides the rest.
    for (part, name), adapter in sorted(adapters.items(), key=lambda row: not row[0][1]):
        if has_part(model, part, name) if name else hasattr(model, part):
            return resolve_name(adapter)
    raise ConfigError(
        f'model: {type(model).__name__} selects boxes or masks in steps that cannot be exported; '
        'classifiers, segmentors, EoMT, LW-DETR, RF-DETR, DETR, Conditional DETR and RetinaNet can '
        'be exported.'
    )
