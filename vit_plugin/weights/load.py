"""Loading a checkpoint of any format into a model, exactly and completely, or not at all."""

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from mmengine.logging import print_log
from torch import Tensor, nn

from vit_plugin.errors import ConfigError

from .conversion import Conversion, choose_format, of_other_classes
from .files import find_weights
from .formats import FORMATS, unstacked, unwrapped
from .report import Report, some
from .sources import load_from_any_format, open_weights


def load_weights(model: nn.Module, source: str | Path | Mapping[str, Tensor], skip: Iterable[str] = (),
                 source_grid: tuple[int, int] | None = None) -> Report:
    """Fill a backbone, or a classifier, detector or segmentor that holds one, from a checkpoint.

    Args:
        model: the model; its own names decide what fits.
        source: a path, ``http(s)://``, ``timm://<model>`` or ``hf://<org>/<model>``, or the tensors by name, in any
            format of :data:`~vit_plugin.weights.formats.FORMATS`.
        skip: patterns of our keys to leave as they are, such as ``'head.{rest}'``.
        source_grid: the grid (h, w) of the checkpoint's position table, where it is no square.

    Returns:
        What became of every key; print it.

    Raises:
        ConfigError: if the source cannot be read, its format is not known, or a key that the model needs is missing
            or misshaped. The model is then as it was.
    """
    weights = source if isinstance(source, Mapping) else open_weights(source)
    prefix, backbone = find_backbone(model)
    targets = {key.removeprefix(prefix): value for key, value in model.state_dict(keep_vars=True).items()}
    conversion = Conversion(backbone, targets, weights, skip, source_grid)
    with torch.no_grad():
        for ours in conversion.report.matched:
            targets[ours].copy_(conversion.tensor(ours))
    return conversion.report


def fit_state_dict(backbone: nn.Module, state: dict[str, Tensor], prefix: str) -> None:
    """Put a state dict, in place, into the names and shapes of a backbone that is about to load it.

    What already has our names is adapted only, and what it lacks or has too much is left to whoever loads it, but for
    blocks that were not built. What does not is converted, and must be complete. Other modules' entries, outside of
    ``prefix``, stay as they are.
    """
    mine = {key.removeprefix(prefix): value for key, value in state.items() if key.startswith(prefix)}
    targets = backbone.state_dict(keep_vars=True)
    fitting = set(mine) <= set(targets) and all(mine[key].shape == targets[key].shape for key in mine)
    if not mine or (fitting and backbone.position.source_grid is None):
        return
    form, _, steps = choose_format(unstacked(unwrapped(mine)), targets)
    own = form is FORMATS['vit_plugin']
    if own:
        targets = {key: value for key, value in targets.items() if key in steps}
    conversion = Conversion(backbone, targets, mine)
    print_log(f'{conversion.report}', 'current')
    surplus = {key for key in conversion.report.ignored if own and not backbone.is_left_out(key)}
    for key in mine.keys() - surplus:
        del state[f'{prefix}{key}']
    state.update({f'{prefix}{ours}': conversion.tensor(ours) for ours in conversion.report.matched})


def fit_classifier_state_dict(backbone: nn.Module, state: dict[str, Tensor], prefix: str) -> None:
    """Put the state dict of a whole classifier of another format, in place, into MMPretrain's parts.

    The names are ``backbone.``, ``neck.`` and ``head.`` after the prefix of the classifier; what has our names already
    is left alone, and so are other modules' entries.
    """
    mine = {key.removeprefix(prefix): value for key, value in state.items() if key.startswith(prefix)}
    targets = backbone.state_dict(keep_vars=True)
    if not mine or any(f'backbone.{key}' in mine for key in targets):
        return
    weights = unstacked(unwrapped(mine))
    try:
        steps = choose_format(weights, targets)[2]
    except ConfigError:
        return  # nothing of it is for the backbone, such as a head's weights alone, which torch can load
    # The backbone cannot know the shapes of what follows it: that is passed on as it is.
    others = {ours: step.make(weights) for ours, step in steps.items() if ours.startswith(('neck.', 'head.'))}
    conversion = Conversion(backbone, targets | others, mine)
    if others:
        conversion.report.notes.append(f'{some(others)} are for the neck and head, and unused if the model has none')
    print_log(f'{conversion.report}', 'current')
    for key in mine:
        del state[f'{prefix}{key}']
    state.update({f'{prefix}{ours if ours in others else f"backbone.{ours}"}': conversion.tensor(ours)
                  for ours in conversion.report.matched})


def fit_head_state_dict(head: nn.Module, state: dict[str, Tensor], prefix: str) -> None:
    """Keep, in place, a head's own classifier in a state dict where that is of another number of classes.

    That is printed, and what the state dict lacks, or has and the head lacks; whether these are errors is left to
    whoever loads.
    """
    targets = head.state_dict()
    report = Report(FORMATS['vit_plugin'].name)
    if not any(f'{prefix}{key}' in state for key in targets):
        report.initialised = dict.fromkeys((f'head.{key}' for key in targets), 'the checkpoint has no head')
    for name in [name for name in state if name.startswith(prefix)]:
        key = name.removeprefix(prefix)
        if key not in targets:
            report.ignored[f'head.{key}'] = 'the model has no such parameter'
        elif reason := of_other_classes(key, state[name], targets[key]):
            report.initialised[f'head.{key}'] = reason
            state[name] = targets[key]
    if report.initialised or report.ignored:
        print_log(f'{report}', 'current', logging.WARNING)


def load_trained(model: nn.Module, checkpoint: str) -> dict[str, Any]:
    """Fill a whole model from a checkpoint that was trained as that model, to predict with it.

    Returns:
        What the checkpoint tells of its training, ``meta``.

    Raises:
        ConfigError: if the checkpoint lacks a tensor of the model, or has one of another shape.
    """
    content = load_from_any_format(checkpoint)
    weights, wanted = find_weights(content), model.state_dict()
    for key in weights.keys() & wanted.keys():
        if 'head' in key and weights[key].shape != wanted[key].shape:  # which loading would leave as it is
            raise ConfigError(f'The checkpoint {checkpoint!r} is not of this model: {key} has the shape '
                              f'{tuple(weights[key].shape)} in it and {tuple(wanted[key].shape)} in the model.')
    try:
        missing = model.load_state_dict(weights, strict=False).missing_keys
    except RuntimeError as error:  # of a shape
        raise ConfigError(f'The checkpoint {checkpoint!r} is not of this model: '
                          f'{str(error).splitlines()[1].strip()}') from error
    if missing:
        raise ConfigError(f'The checkpoint {checkpoint!r} is not of this model: it lacks {len(missing)} of its '
                          f'{len(wanted)} tensors, such as {missing[0]!r}.')
    return content.get('meta', {})


def find_backbone(model: nn.Module) -> tuple[str, nn.Module]:
    """The one backbone of ours inside a model, and what precedes its parameters' names.

    Raises:
        ConfigError: if there is none, or more than one.
    """
    found = [(f'{name}.' if name else '', module) for name, module in model.named_modules()
             if hasattr(module, 'patch_embed') and hasattr(module, 'position')]
    if len(found) != 1:
        raise ConfigError('load_weights wants a model with one vit_plugin.VisionTransformer, and '
                          f'{type(model).__name__} has {len(found)}.')
    return found[0]
