"""Fit weights to a timm model, or to its ``features_only`` version.

A ``features_only`` model returns feature maps. It lacks the classifier and perhaps the last layers
of the complete model, and joins the names of stages (``stages.0.`` becomes ``stages_0.``). Files
have the names of the complete model, with or without a prefix, or those of another library.
"""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import timm
import torch
from torch import Tensor, nn

from vit_plugin.errors import ConfigError, is_out_of_memory
from vit_plugin.weights.reading.lazy import Lazy, Weights
from vit_plugin.weights.recognition import without_wrapper_prefixes
from vit_plugin.weights.report import HARMLESS, Report, shortened_list
from vit_plugin.weights.rules import BATCHES_TRACKED, check_real

from .layers.patch_resize import adapt_channels

# Prefixes of timm's names in files of timm, of a TimmBackbone and of OpenCLIP, and in hybrids with
# a TimmEmbed.
TIMM_PREFIXES = ('', 'model.', 'backbone.', 'backbone.model.', 'visual.trunk.')
HYBRID_PREFIXES = ('patch_embed.backbone.', 'backbone.patch_embed.backbone.')
STAGE = re.compile(r'([a-z]\w*?)_(\d+)\.')  # a stage's name in a `features_only` model
# The note on weights that are matched by order.
IN_ORDER = (
    'its names are not those of timm, but all shapes agree in the order of timm: its tensors are '
    'matched by order'
)


class CompleteModel(NamedTuple):
    """The names and shapes of a timm model that is not ``features_only``.

    Attributes:
        tensors: its state dict in order, on the meta device.
        classifiers: the names of the modules that are its classifiers.
        needed: the names of the tensors that every file has: no classifier, no batch counters.
    """

    tensors: Mapping[str, Tensor]
    classifiers: frozenset[str]
    needed: frozenset[str]


def fit_timm(
    model: nn.Module, name: str, file_weights: Weights
) -> tuple[dict[str, Tensor], Report]:
    """The weights for a timm model, from a file of the complete model.

    They are matched by timm's names, else by order if the shapes of all tensors agree, else by
    timm's own checkpoint filter for that model.

    Args:
        model: timm's module, or its ``features_only``.
        name: timm's name of the model.
        file_weights: the weights, by the names in the file.

    Returns:
        The weights by the names of ``model``, and a report. A batch counter that the file lacks
        keeps its value.

    Raises:
        ConfigError: if a tensor of the module is missing, has a different shape or is quantized, or
            if the file has a tensor that timm's model does not have.
    """
    complete, targets = _complete_model(name), model.state_dict()
    file_weights = without_wrapper_prefixes(file_weights)
    prefix = _find_prefix(file_weights, targets)
    weights, note = next(
        (
            candidate
            for candidate in _candidates(model, complete, file_weights, prefix)
            if not _find_misfits(candidate[0], targets)
        ),
        (_without_prefix(file_weights, prefix), ''),  # none fits: report names of timm
    )
    if wrong := _find_misfits(weights, targets):
        raise ConfigError(
            f'The checkpoint does not fit the model {name!r} of timm: {shortened_list(wrong)} are '
            'missing or of another shape; give the weights of this model, under the names of timm.'
        )
    keys = {target: key for target in targets if (key := _find_key(target, weights))}
    for target, key in keys.items():
        if targets[target].is_floating_point():
            check_real(key, weights[key])
    report = Report(
        'timm',
        matched={target: (key,) for target, key in keys.items()},
        initialized=dict.fromkeys(
            targets.keys() - keys.keys(), f'batches were not counted, {HARMLESS}'
        ),
        ignored=_why_unused(sorted(weights.keys() - keys.values()), complete, name)
        | {key: f'not in {prefix[:-1]}' for key in file_weights if not key.startswith(prefix)},
        notes=[note] if note else [],
    )
    fitted = {
        target: _with_channels(weights[keys[target]], value) if target in keys else value
        for target, value in targets.items()
    }
    return fitted, report


def _why_unused(unused: Sequence[str], complete: CompleteModel, name: str) -> dict[str, str]:
    """Why weights are not used, by their names.

    Raises:
        ConfigError: if the complete model with this name lacks one of them.
    """
    if unknown := [key for key in unused if _complete_name(key) not in complete.tensors]:
        raise ConfigError(
            f'The checkpoint has {shortened_list(unknown)}, which the model {name!r} of timm does '
            'not have; give the weights of this model.'
        )
    return {
        key: 'of its classifier'
        if _module_of(key) in complete.classifiers
        else 'no output needs it'
        for key in unused
    }


def is_timm_checkpoint(name: str, file_weights: Weights) -> bool:
    """True if weights have the names of a timm model, or its shapes in the same order."""
    complete, file_weights = _complete_model(name), without_wrapper_prefixes(file_weights)
    by_name = any(
        complete.needed <= _without_prefix(file_weights, prefix).keys() for prefix in TIMM_PREFIXES
    )
    return by_name or bool(_rename_in_order(complete, file_weights))


@lru_cache(maxsize=8)
def _complete_model(name: str) -> CompleteModel:
    """The complete model of timm with this name, built on the meta device."""
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


def _candidates(
    model: nn.Module, complete: CompleteModel, file_weights: Weights, prefix: str
) -> Iterator[tuple[Weights, str]]:
    """The weights under timm's names, renamed in several ways, each with a note for the report."""
    named = _without_prefix(file_weights, prefix)
    yield named, ''
    if ordered := _rename_in_order(complete, file_weights):
        yield ordered, IN_ORDER
    # The modules of timm's models define this function for older and foreign files.
    adapt = getattr(sys.modules[type(model).__module__], 'checkpoint_filter_fn', None)
    if adapt:
        try:
            adapted = adapt({**named}, model)
        except Exception as error:
            if is_out_of_memory(error):
                raise
            return  # they raise various errors for the file of another model
        yield adapted, ''


def _find_prefix(file_weights: Weights, targets: Mapping[str, Tensor]) -> str:
    """The prefix that matches most targets."""

    def count_matches(prefix: str) -> int:
        weights = _without_prefix(file_weights, prefix)
        return sum(1 for target in targets if _find_key(target, weights))

    return max((*TIMM_PREFIXES, *HYBRID_PREFIXES), key=count_matches)


def _without_prefix(weights: Weights, prefix: str) -> Weights:
    """Select the weights whose names have a prefix, and strip it."""
    if not prefix:
        return weights
    names = [key.removeprefix(prefix) for key in weights if key.startswith(prefix)]
    return Lazy(names, lambda name: weights[f'{prefix}{name}'])


def _find_key(target: str, weights: Weights) -> str:
    """The name under which weights have a tensor of the model, or ''."""
    return next((name for name in (target, _complete_name(target)) if name in weights), '')


def _complete_name(name: str) -> str:
    """The name of a ``features_only`` tensor in the complete model."""
    return STAGE.sub(r'\1.\2.', name, count=1)


def _rename_in_order(complete: CompleteModel, file_weights: Weights) -> dict[str, Tensor]:
    """Rename weights that have the order and the shapes of a model. Others give {}.

    A classifier may have a different number of classes.
    """
    tensors = {
        name: value
        for name, value in complete.tensors.items()
        if not name.endswith(BATCHES_TRACKED)
    }
    keys = [key for key in file_weights if not key.endswith(BATCHES_TRACKED)]
    if len(tensors) != len(keys):  # cheap check before tensors are read
        return {}
    renamed = dict(zip(tensors, map(file_weights.__getitem__, keys), strict=True))
    for name, value in tensors.items():
        is_classifier = _module_of(name) in complete.classifiers
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
    """Adapt a first convolution to the number of image channels of its target.

    Other tensors, and those that differ in another dimension, are returned unchanged.
    """
    fits_otherwise = value.shape[:1] + value.shape[2:] == target.shape[:1] + target.shape[2:]
    if value.ndim == 4 and value.numel() and fits_otherwise and value.shape != target.shape:
        return adapt_channels(value, target.shape[1])
    return value
