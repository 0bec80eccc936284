"""Fit weights to a timm model, or to its ``features_only`` version."""

import re
import sys
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

import timm
import torch
from torch import Tensor, nn

from vit_plugin.errors import ConfigError
from vit_plugin.weights.reading.lazy import Lazy, Weights
from vit_plugin.weights.recognition import without_wrapper_prefixes
from vit_plugin.weights.report import HARMLESS, Report, shortened_list
from vit_plugin.weights.rules import BATCHES_TRACKED

from .layers.patch_resize import adapt_channels

# Prefixes of the names in files of timm and of TimmBackbone, and in hybrids with a TimmEmbed.
TIMM_PREFIXES = ('', 'model.', 'backbone.', 'backbone.model.')
HYBRID_PREFIXES = ('patch_embed.backbone.', 'backbone.patch_embed.backbone.')
STAGE = re.compile(r'([a-z]\w*?)_(\d+)\.')  # a stage's name in timm's FeatureListNet
IN_ORDER = (
    'its names are not those of timm, but all shapes agree in the order of timm, in which its '
    'tensors are taken'
)


class CompleteModel(NamedTuple):
    """A complete timm model.

    Attributes:
        tensors: its state dict in order, without values.
        classifiers: the names of the modules that are its classifiers.
        needed: the names of the tensors that every file must have.
    """

    tensors: Mapping[str, Tensor]
    classifiers: frozenset[str]
    needed: frozenset[str]


def fit_timm(
    model: nn.Module, name: str, file_weights: Weights
) -> tuple[dict[str, Tensor], Report]:
    """The weights for a timm model, from a file of the whole model.

    They are matched by timm's names, or else by order, if the shapes of all tensors agree, or else
    by timm's own checkpoint filter for that model.

    Args:
        model: timm's module, or its ``features_only``.
        name: timm's name of the model.
        file_weights: the weights, by their own names.

    Returns:
        The weights by the names of the module, and a report.

    Raises:
        ConfigError: if a tensor of the module is missing or has a different shape, or if the file
            has a tensor that timm's model does not have.
    """
    whole, targets = _whole(name), model.state_dict()
    theirs = without_wrapper_prefixes(file_weights)
    prefix = _find_prefix(theirs, targets)
    readings = _readings(model, whole, theirs, prefix)
    weights, note = next(
        (reading for reading in readings if not _find_misfits(reading[0], targets)),
        (_without_prefix(theirs, prefix), ''),
    )
    if wrong := _find_misfits(weights, targets):
        raise ConfigError(
            f'The checkpoint does not fit the model {name!r} of timm: {shortened_list(wrong)} are '
            'missing or of another shape; give the weights of this model, under the names of timm.'
        )
    keys = {target: key for target in targets if (key := _find_key(target, weights))}
    unused = sorted(weights.keys() - keys.values())
    if unknown := [key for key in unused if _whole_name(key) not in whole.tensors]:
        raise ConfigError(
            f'The checkpoint has {shortened_list(unknown)}, which the model {name!r} of timm does '
            'not have; give the weights of this model.'
        )
    ignored = {
        key: 'of its classifier' if _module_of(key) in whole.classifiers else 'no output needs it'
        for key in unused
    } | {key: f'not in {prefix[:-1]}' for key in theirs if not key.startswith(prefix)}
    report = Report(
        'timm',
        matched={target: (key,) for target, key in keys.items()},
        initialized=dict.fromkeys(
            targets.keys() - keys.keys(), f'batches were not counted, {HARMLESS}'
        ),
        ignored=ignored,
        notes=[note] if note else [],
    )
    fitted = {
        target: _with_channels(weights[keys[target]], value) if target in keys else value
        for target, value in targets.items()
    }
    return fitted, report


def is_of_timm(name: str, file_weights: Weights) -> bool:
    """True if weights have the names of a timm model, or its shapes in the same order."""
    whole, theirs = _whole(name), without_wrapper_prefixes(file_weights)
    by_name = any(
        whole.needed <= _without_prefix(theirs, prefix).keys() for prefix in TIMM_PREFIXES
    )
    return by_name or bool(_rename_in_order(whole, theirs))


@lru_cache(maxsize=8)
def _whole(name: str) -> CompleteModel:
    """The complete model of timm with this name."""
    with torch.device('meta'):
        model = timm.create_model(name)
    tensors, classifiers = model.state_dict(), model.pretrained_cfg.get('classifier') or ()
    classifiers = frozenset([classifiers] if isinstance(classifiers, str) else classifiers)
    needed = {
        key
        for key in tensors
        if _module_of(key) not in classifiers and not key.endswith(BATCHES_TRACKED)
    }
    return CompleteModel(tensors, classifiers, frozenset(needed))


def _readings(
    model: nn.Module, whole: CompleteModel, theirs: Weights, prefix: str
) -> Iterator[tuple[Weights, str]]:
    """The ways to map a file to timm's names, each with a note for the report."""
    named = _without_prefix(theirs, prefix)
    yield named, ''
    if ordered := _rename_in_order(whole, theirs):
        yield ordered, IN_ORDER
    adapt = getattr(sys.modules[type(model).__module__], 'checkpoint_filter_fn', None)
    if adapt:
        yield adapt({**named}, model), ''


def _find_prefix(theirs: Weights, targets: Mapping[str, Tensor]) -> str:
    """The prefix that matches most targets."""

    def count_matches(prefix: str) -> int:
        weights = _without_prefix(theirs, prefix)
        return sum(1 for target in targets if _find_key(target, weights))

    return max((*TIMM_PREFIXES, *HYBRID_PREFIXES), key=count_matches)


def _without_prefix(weights: Weights, prefix: str) -> Weights:
    """The weights whose names have a prefix, without it."""
    if not prefix:
        return weights
    names = [key.removeprefix(prefix) for key in weights if key.startswith(prefix)]
    return Lazy(names, lambda name: weights[f'{prefix}{name}'])


def _find_key(target: str, weights: Weights) -> str:
    """The name of a ``features_only`` tensor in these weights, or ''."""
    return next((name for name in (target, _whole_name(target)) if name in weights), '')


def _whole_name(name: str) -> str:
    """The name of a ``features_only`` tensor in the whole model."""
    return STAGE.sub(r'\1.\2.', name, count=1)


def _rename_in_order(whole: CompleteModel, theirs: Weights) -> dict[str, Tensor]:
    """Rename weights that have the order and the shapes of a model. Others give {}.

    A classifier may have a different number of classes.
    """
    tensors = {
        name: value for name, value in whole.tensors.items() if not name.endswith(BATCHES_TRACKED)
    }
    keys = [key for key in theirs if not key.endswith(BATCHES_TRACKED)]
    if len(tensors) != len(keys):  # cheap check before tensors are read
        return {}
    renamed = dict(zip(tensors, map(theirs.__getitem__, keys), strict=True))
    for name, value in tensors.items():
        is_classifier = _module_of(name) in whole.classifiers
        first = 1 if is_classifier else 0  # without the dimension of classes
        if renamed[name].shape[first:] != value.shape[first:]:
            return {}
    return renamed


def _module_of(name: str) -> str:
    return name.rpartition('.')[0]


def _find_misfits(weights: Weights, targets: Mapping[str, Tensor]) -> list[str]:
    """The names of tensors that weights lack, or have in a different shape."""
    wrong = []
    for target, value in targets.items():
        key = _find_key(target, weights)
        fits = _with_channels(weights[key], value).shape == value.shape if key else False
        if not (fits or (not key and target.endswith(BATCHES_TRACKED))):
            wrong.append(target)
    return wrong


def _with_channels(value: Tensor, target: Tensor) -> Tensor:
    """Adapt a convolution to a different number of image channels."""
    fits_otherwise = value.shape[:1] + value.shape[2:] == target.shape[:1] + target.shape[2:]
    if value.ndim == 4 and fits_otherwise and value.shape != target.shape:
        return adapt_channels(value, target.shape[1])
    return value
