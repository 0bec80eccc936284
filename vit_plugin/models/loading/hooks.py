"""``load_state_dict`` hooks for weights of any format and resolution, in any model.

torch calls them with the state dict of the whole model, which they change in place before it is
loaded. So MMEngine's loading, which knows only ``load_state_dict``, converts weights too.
"""

from collections.abc import Mapping
from typing import Any

import torch
from mmengine.logging import print_log
from torch import Tensor, nn
from torch.distributed.tensor import DTensor, Shard

from vit_plugin.errors import ConfigError
from vit_plugin.weights.reading.tensors import is_plain
from vit_plugin.weights.recognition import recognize
from vit_plugin.weights.report import shortened_list
from vit_plugin.weights.rules import GRID

from .adapted_weights import AdaptedWeights
from .position_table import saved_grid
from .stem_weights import find_stem_weights

CLASSIFIER_PARTS = ('backbone.', 'neck.', 'head.')  # components of MMPretrain's ImageClassifier


def fit_backbone(backbone: nn.Module, state: dict[str, Any], prefix: str, *args: Any) -> None:
    """``load_state_dict`` hook: convert a state, in place, to the names and shapes of a backbone.

    A state with our names is only adapted. torch then reports missing keys, and keys outside the
    encoder and stem. A state with other names is converted and must be complete. Entries of other
    modules, outside ``prefix``, stay unchanged.

    Raises:
        ConfigError: see :func:`~vit_plugin.models.load_weights`. Weights of an encoder or stem that
            the model lacks raise it for any value of ``strict``, because torch does not pass
            ``strict`` to hooks.
    """
    entries = without_prefix(state, prefix)
    if not entries:
        return
    targets = backbone.state_dict(keep_vars=True)
    # Weights with our names and this model's shapes need no conversion.
    if _has_certain_grid(backbone, entries, targets) and all(
        _fits(backbone, key, value, targets.get(key)) for key, value in entries.items()
    ):
        keep_shards(backbone, state, prefix)
        return
    if _fit_stem(backbone, state, prefix, prefix):
        return
    weights = recognize(entries, targets)
    has_our_names = weights.is_own
    if has_our_names:  # torch reports the missing ones
        targets = {key: value for key, value in targets.items() if key in weights}
    adapted = AdaptedWeights(backbone, targets, weights, complete=not has_our_names)
    report = adapted.report
    if report.adapted or report.ignored or report.numerics or report.notes or not has_our_names:
        print_log(f'{report}', 'current')
    # torch reports these as unexpected keys, unless `strict` is False.
    for_torch_to_report = {
        key
        for key in report.ignored
        if has_our_names and not adapted.plan.why_unused(key.removeprefix(weights.prefix))
    }
    for key in entries.keys() - for_torch_to_report:
        del state[f'{prefix}{key}']
    state.update({f'{prefix}{ours}': value for ours, value in adapted.items()})
    keep_shards(backbone, state, prefix)


def _fits(backbone: nn.Module, key: str, value: Any, target: Any) -> bool:
    """True if a tensor can be loaded into a target unchanged. The target may be missing."""
    if target is None or not isinstance(value, Tensor) or not is_plain(value):
        return False
    if key == GRID:
        return saved_grid(value) == backbone.position.grid
    has_same_kind = value.is_floating_point() == target.is_floating_point()
    return has_same_kind and value.shape == target.shape


def _has_certain_grid(
    backbone: nn.Module, entries: Mapping[str, Any], targets: Mapping[str, Any]
) -> bool:
    """True if the entries have no position table whose grid may differ from the model's.

    A table without a stated grid is taken as a square. Weights of timm, MAE and DINO without a head
    have our names and such tables.
    """
    if GRID in entries or GRID not in targets or 'pos_embed' not in entries:
        return True
    rows, columns = backbone.position.grid
    return rows == columns and not backbone.position.source_grid


def fit_classifier(backbone: nn.Module, state: dict[str, Any], prefix: str) -> None:
    """Convert a complete classifier's state from another format to MMPretrain's parts, in place.

    The names become ``backbone.``, ``neck.`` and ``head.`` after the prefix of the classifier. A
    state with our names and entries of other modules stay unchanged.

    Raises:
        ConfigError: see :func:`~vit_plugin.models.load_weights`.
    """
    entries = without_prefix(state, prefix)
    targets = backbone.state_dict(keep_vars=True)
    if not entries or any(f'backbone.{key}' in entries for key in targets):
        return
    if _fit_stem(backbone, state, prefix, f'{prefix}backbone.'):
        return
    try:
        weights = recognize(entries, targets)
    except ConfigError:
        # The format is unknown, as for weights of a head alone, which torch can load.
        if all(key.startswith(CLASSIFIER_PARTS) for key in entries):
            return
        raise
    # The backbone does not know the shapes of neck and head, so their weights are passed on
    # unchanged.
    outside = {
        ours: value for ours, value in weights.items() if ours.startswith(('neck.', 'head.'))
    }
    adapted = AdaptedWeights(backbone, targets | outside, weights)
    if outside:
        adapted.report.notes.append(
            f'{shortened_list(outside)} are for the neck and head, and unused if the model has none'
        )
    print_log(f'{adapted.report}', 'current')
    for key in entries:
        del state[f'{prefix}{key}']
    for ours, value in adapted.items():
        name = ours if ours in outside else f'backbone.{ours}'
        state[f'{prefix}{name}'] = value


def _fit_stem(backbone: nn.Module, state: dict[str, Any], prefix: str, our_prefix: str) -> bool:
    """Convert a state that has only the stem's CNN, in place. False for any other state.

    Args:
        backbone: the model's backbone.
        state: the state, whose entries with the prefix are converted.
        prefix: prefix of the entries.
        our_prefix: the prefix that the backbone's names get.
    """
    entries = without_prefix(state, prefix)
    stem = find_stem_weights(backbone, backbone.state_dict(keep_vars=True), entries)
    if stem:
        tensors, report = stem
        print_log(f'{report}', 'current')
        for key in entries:
            del state[f'{prefix}{key}']
        state.update({f'{our_prefix}{name}': value for name, value in tensors.items()})
        keep_shards(backbone, state, our_prefix)
    return bool(stem)


def without_prefix(state: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """The entries with this prefix, without extra state, which modules read themselves."""
    if all(isinstance(key, str) for key in state):  # reading rejects other keys
        state = {key.removeprefix(prefix): state[key] for key in state if key.startswith(prefix)}
    return {
        key: value
        for key, value in state.items()
        if key == GRID or not str(key).endswith('_extra_state')
    }


def keep_shards(module: nn.Module, state: dict[str, Any], prefix: str, *args: Any) -> None:
    """``load_state_dict`` hook for sharded modules: keep this process's part of each tensor."""
    for name, target in module.state_dict(keep_vars=True).items():
        if isinstance(target, DTensor) and f'{prefix}{name}' in state:
            state[f'{prefix}{name}'] = shard_like(state[f'{prefix}{name}'], target)


def shard_like(value: Tensor, target: Tensor, copy: bool = False) -> Tensor:
    """Shard a complete tensor like its target, if that is sharded: each process takes its part.

    Args:
        value: the complete tensor.
        target: the tensor that will receive it.
        copy: whether the result replaces the target. It then needs the target's type and its own
            memory. A shard always has these: a view would keep the complete tensor alive, and
            torch's stager mistakes a view's offset for an address.
    """
    if not isinstance(target, DTensor) or isinstance(value, DTensor) or value.shape != target.shape:
        if not copy:
            return value
        return value.detach().to(target.dtype, copy=True, memory_format=torch.contiguous_format)
    mesh, part = target.device_mesh, value.detach()
    # Only this part is read from the file and moved to the device.
    for ranks, coordinate, placement in zip(
        mesh.shape, mesh.get_coordinate() or (), target.placements, strict=True
    ):
        if isinstance(placement, Shard):
            side = part.shape[placement.dim]
            size = -(-side // ranks)  # the last parts may be smaller or empty
            start = min(size * coordinate, side)
            part = part.narrow(placement.dim, start, min(size, side - start))
    return DTensor.from_local(
        part.to(mesh.device_type, target.dtype, copy=True, memory_format=torch.contiguous_format),
        mesh,
        target.placements,
        run_check=False,
        shape=target.shape,
        stride=target.stride(),
    )
