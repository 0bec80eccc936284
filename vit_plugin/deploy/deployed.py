"""Choose the adapter that turns a trained model into a graph.

An adapter is a subclass of :class:`~vit_plugin.deploy.deployed_module.Deployed`. Projects and tasks
declare theirs for the models that they define.
"""

from copy import deepcopy
from pkgutil import resolve_name

import torch
from torch import nn

from vit_plugin.errors import ConfigError
from vit_plugin.inference.answered_task import has_component
from vit_plugin.models.classifier import Classifier
from vit_plugin.models.protocol import Backbone
from vit_plugin.project import declared_rows
from vit_plugin.task import task_declarations

from .deployed_module import Deployed, DeployedFeatures, DeployedPlainClassifier


def deploy(model: nn.Module, dtype: str = 'float32') -> Deployed:
    """A copy of a trained model to export, in eval mode.

    Args:
        model: the model.
        dtype: the dtype of the exported file. Only ``'bfloat16'`` changes the copy, which is
            float32 otherwise.

    Raises:
        ConfigError: if the backbone is not one of this package, or if the model has operations that
            cannot be exported.
    """
    backbone = getattr(model, 'backbone', None)
    if not isinstance(backbone, Backbone):
        raise ConfigError(
            f'model.backbone: {type(backbone).__name__} is not one of vit_plugin, and only those '
            'can be exported.'
        )
    network_dtype = torch.bfloat16 if dtype == 'bfloat16' else torch.float32
    adapter = _find_adapter(model)
    return adapter(deepcopy(model), network_dtype).eval().requires_grad_(False)


def _find_adapter(model: nn.Module) -> type[Deployed]:
    """The adapter of a model.

    Raises:
        ConfigError: see :func:`deploy`.
    """
    if isinstance(model, Classifier):
        return DeployedPlainClassifier if model.num_classes else DeployedFeatures
    # (component, class) -> adapter, for models whose component is of this class. An empty class
    # stands for any, so these rows come last.
    adapters = dict(declared_rows('deployed'))
    for rows in task_declarations('deployed').values():
        adapters |= rows
    for (component, class_name), adapter in sorted(adapters.items(), key=lambda row: not row[0][1]):
        if class_name:
            matches = has_component(model, component, class_name)
        else:
            matches = hasattr(model, component)
        if matches:
            return resolve_name(adapter)
    raise ConfigError(
        f'model: {type(model).__name__} selects boxes or masks in steps that cannot be exported; '
        'classifiers, segmentors, depth models, EoMT, LW-DETR, RF-DETR, D-FINE, DEIMv2, ECDet, '
        'RT-DETR, DETR, Conditional DETR and RetinaNet can be exported.'
    )
