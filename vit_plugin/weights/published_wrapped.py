"""Config and weights of published models whose backbone wraps a module of another library.

Readers of projects return them, for models such as timm's that no encoder here computes.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor

from vit_plugin.arguments.fields import Section

from .published_settings import classifier_settings
from .reading.lazy import Lazy, Weights
from .rules import check_real

WRAPPED_HEAD = 'head.layers.head'


def wrapped_run(
    backbone: Section,
    width: int,
    classes: Sequence[str],
    pixels: tuple[Sequence[Section], Mapping[str, Any]],
    weights: Weights,
) -> tuple[Section, list[str], Weights]:
    """The config, classes and weights of a classifier or encoder around such a backbone.

    This is what a reader returns, see :attr:`vit_plugin.project.Project.published`.

    Args:
        backbone: the config of the backbone that wraps the other library's module, and returns one
            vector per image.
        width: channels of the vector.
        classes: the names of the classes, or empty.
        pixels: ``steps`` and ``colors``, see
            :func:`~vit_plugin.weights.published_settings.classifier_settings`.
        weights: the weights by our names.
    """
    model: Section = dict(type='ImageClassifier', backbone=backbone)
    if classes:
        model['head'] = dict(
            type='vit_plugin.ViTClsHead', num_classes=len(classes), in_channels=width
        )
    return classifier_settings(model, classes, *pixels), list(classes), weights


def wrapped_weights(
    names: Sequence[str],
    load: Callable[[], Mapping[str, Tensor]],
    theirs: Weights,
    classifiers: Sequence[str],
) -> Weights:
    """The weights by our names. The backbone is loaded on the first access to one of its tensors.

    Args:
        names: the names of the backbone's tensors.
        load: returns these tensors.
        theirs: the weights by their own names.
        classifiers: their names of the linear layers whose mean is the head; may be empty.

    Raises:
        ConfigError: on access to a layer of the head, if it is quantized.
    """
    loaded = cache(load)
    backbone_names = {f'backbone.{name}': name for name in names}
    head = [f'{WRAPPED_HEAD}.weight', f'{WRAPPED_HEAD}.bias'] if classifiers else []

    def read(name: str) -> Tensor:
        if name in backbone_names:
            return loaded()[backbone_names[name]]
        kind = name.rpartition('.')[2]  # weight or bias
        keys = [f'{classifier}.{kind}' for classifier in classifiers]
        if kind == 'bias' and not {*keys} <= {*theirs}:
            return torch.zeros(len(theirs[f'{classifiers[0]}.weight']))
        for key in keys:
            check_real(key, theirs[key])
        return torch.stack([theirs[key].float() for key in keys]).mean(dim=0)

    return Lazy([*backbone_names, *head], read)
