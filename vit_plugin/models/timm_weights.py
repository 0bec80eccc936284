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

# Prefixes of the names in files of timm, of TimmBackbone, and of TimmEmbed.
TIMM_PREFIXES = ('', 'model.', 'backbone.', 'backbone.model.')
OF_STEMS = ('patch_embed.backbone.', 'backbone.patch_embed.backbone.')
STAGE = re.compile(r'([a-z]\w*?)_(\d+)\.')  # a stage's name in timm's FeatureListNet
IN_ORDER = (
    'its names are not those of timm, but all shapes agree in the order of timm, in which its '
    'tensors are taken'
)


class Whole(NamedTuple):
    """A complete timm model.

    Attributes:
        tensors: its state dict in order, without values.
        classifiers: the names of the modules that are its classifiers.
        needed: the names of the tensors that every file must have.
    """

    tensors: Mapping[str, Tensor]
    classifiers: frozenset[str]
    needed: frozenset[str]


def fit_timm(model: nn.Module, name: str, given: Weights) -> tuple[dict[str, Tensor], Report]:
    """The weights for a timm model, from a file of the whole model.

    They are matched by timm's names, or else by order, if the shapes of all tensors agree, or else
    by timm's own checkpoint filter for that model.

    Args:
        model: timm's module, or its ``features_only``.
        name: timm's name of the model.
        given: the weights, by their own names.

    Returns:
        The weights by the names of the module, and a report.

    Raises:
        ConfigError: if a tensor of the module is missing or has another shape, or if the file has a
            tensor that timm's model does not have.
    """
    whole, targets, theirs = _whole(name), model.state_dict(), without_wrapper_prefixes(given)
    prefix = _find_prefix(theirs, targets)
    readings = _readings(model, whole, theirs, prefix)
    weights, note = next(
        (reading for reading in readings if not _unfit(reading[0], targets)),
        (_inside(theirs, prefix), ''),
    )
    if wrong := _unfit(weights, targets):
        raise ConfigError(
            f'The checkpoint does not fit the model {name!r} of timm: {shortened_list(wrong)} are '
            'missing or of another shape; give the weights of this model, under the names of timm.'
        )
    taken = {target: key for target in targets if (key := _find_key(target, weights))}
    unused = sorted(weights.keys() - taken.values())
    if unknown := [key for key in unused if _in_full(key) not in whole.tensors]:
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
        matched={target: (key,) for target, key in taken.items()},
        initialized=dict.fromkeys(
            targets.keys() - taken.keys(), f'batches were not counted, {HARMLESS}'
        ),
        ignored=ignored,
        notes=[note] * bool(note),
    )
    fitted = {
        target: _with_channels(weights[taken[target]], value) if target in taken else value
        for target, value in targets.items()
    }
    return fitted, report


def is_of_timm(name: str, given: Weights) -> bool:
    """True if weights have the names of a timm model, or its shapes in the same order."""
    whole, theirs = _whole(name), without_wrapper_prefixes(given)
    by_name = any(whole.needed <= _inside(theirs, prefix).keys() for prefix in TIMM_PREFIXES)
    return by_name or bool(_rename_in_order(whole, theirs))


@lru_cache(maxsize=8)
def _whole(name: str) -> Whole:
    with torch.device('meta'):
        model = timm.create_model(name)
    tensors, classifiers = model.state_dict(), model.pretrained_cfg.get('classifier') or ()
    classifiers = frozenset([classifiers] if isinstance(classifiers, str) else classifiers)
    needed = {
        key
        for key in tensors
        if _module_of(key) not in classifiers and not key.endswith(BATCHES_TRACKED)
    }
    return Whole(tensors, classifiers, frozenset(needed))


def _readings(
    model: nn.Module, whole: Whole, theirs: Weights, prefix: str
) -> Iterator[tuple[Weights, str]]:
    """The ways to map a file to timm's names, each with a note for the report."""
    named = _inside(theirs, prefix)
    yield named, ''
    if ordered := _rename_in_order(whole, theirs):
        yield ordered, IN_ORDER
    adapt = getattr(sys.modules[type(model).__module__], 'checkpoint_filter_fn', None)
    if adapt:
        yield adapt({**named}, model), ''


def _find_prefix(theirs: Weights, targets: Mapping[str, Tensor]) -> str:
    """The prefix that matches most targets."""

    def number_found(prefix: str) -> int:
        inside = _inside(theirs, prefix)
        return sum(bool(_find_key(target, inside)) for target in targets)

    return max((*TIMM_PREFIXES, *OF_STEMS), key=number_found)


def _inside(weights: Weights, prefix: str) -> Weights:
    """The weights whose names have a prefix, without it."""
    if not prefix:
        return weights
    names = [key.removeprefix(prefix) for key in weights if key.startswith(prefix)]
    return Lazy(names, lambda name: weights[f'{prefix}{name}'])


def _find_key(target: str, weights: Weights) -> str:
    """The name of a ``features_only`` tensor in these weights, or ''."""
    return next((name for name in (target, _in_full(target)) if name in weights), '')


def _in_full(name: str) -> str:
    """The name of a ``features_only`` tensor in the whole model."""
    return STAGE.sub(r'\1.\2.', name, count=1)


def _rename_in_order(whole: Whole, theirs: Weights) -> dict[str, Tensor]:
    """Rename weights that have the order and the shapes of a model; {} for others.

    A classifier may have another number of classes.
    """
    wanted = {
        key: value for key, value in whole.tensors.items() if not key.endswith(BATCHES_TRACKED)
    }
    keys = [key for key in theirs if not key.endswith(BATCHES_TRACKED)]
    if len(wanted) != len(keys):  # cheap check before tensors are read
        return {}
    renamed = dict(zip(wanted, map(theirs.__getitem__, keys), strict=True))
    starts = {key: int(_module_of(key) in whole.classifiers) for key in wanted}
    same = all(renamed[key].shape[i:] == wanted[key].shape[i:] for key, i in starts.items())
    return renamed if same else {}


def _module_of(name: str) -> str:
    return name.rpartition('.')[0]


def _unfit(weights: Weights, targets: Mapping[str, Tensor]) -> list[str]:
    """The names of tensors that weights lack, or have in another shape."""
    wrong = []
    for target, value in targets.items():
        key = _find_key(target, weights)
        fits = _with_channels(weights[key], value).shape == value.shape if key else False
        if not (fits or (not key and target.endswith(BATCHES_TRACKED))):
            wrong.append(target)
    return wrong


def _with_channels(value: Tensor, target: Tensor) -> Tensor:
    """Adapt a convolution to another number of image channels."""
    same = value.shape[:1] + value.shape[2:] == target.shape[:1] + target.shape[2:]
    if value.ndim == 4 and same and value.shape != target.shape:
        return adapt_channels(value, target.shape[1])
    return value
