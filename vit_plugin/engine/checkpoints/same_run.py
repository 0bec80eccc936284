"""Before loading, check that a checkpoint has the complete state of a run this one can continue."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from itertools import chain
from typing import Any

import torch
from mmengine.runner import EpochBasedTrainLoop, Runner
from torch import Tensor, nn

from vit_plugin.errors import ConfigError

from ..sharding import unwrapped
from .state import global_batch, identity, scheduler_state, teacher_of

WEIGHTS_ALONE = (
    'start from its weights alone with --cfg-options load_from=FILE in place of --resume'
)

OTHER_GROUPS = (
    'its optimizer has other groups of parameters (optim_wrapper.paramwise_cfg, or frozen stages)'
)


def check_same_run(runner: Runner, checkpoint: Mapping[str, Any], path: str) -> None:
    """Raise a ``ConfigError`` if a checkpoint lacks the full state of a run this one can continue.

    The number of processes may differ, as long as together they take as many samples in an
    iteration.
    """
    recorded = checkpoint['meta'].get('run', {})
    difference = (
        _of_position(runner, checkpoint['meta'])
        or _of_model(unwrapped(runner.model), checkpoint['state_dict'])
        or _of_optimizer(
            runner.optim_wrapper.optimizer, checkpoint.get('optimizer'), recorded, identity(runner)
        )
        or _of_schedulers(
            runner.param_schedulers, checkpoint.get('param_schedulers'), checkpoint['meta']['iter']
        )
        or _of_teacher(teacher_of(unwrapped(runner.model)), recorded.get('teacher'))
    )
    if difference:
        raise ConfigError(
            f'{path!r} is of another run: {difference}; resume with the config that wrote it, or '
            f'{WEIGHTS_ALONE}.'
        )
    batch, saved = global_batch(runner), recorded.get('batch')
    if batch and saved and batch != saved:
        each, rest = divmod(saved, runner.world_size)
        remedy = f'train_dataloader.batch_size={each} with these {runner.world_size} processes'
        if rest:
            remedy = (
                f'a number of processes that divides {saved}, and the train_dataloader.batch_size '
                'for it'
            )
        raise ConfigError(
            f'{path!r} is of a run that took {saved} samples in an iteration, and this one takes '
            f'{batch} (train_dataloader.batch_size times processes), so its position in the data '
            f'and in the schedules would be wrong; give {remedy}, or {WEIGHTS_ALONE}.'
        )


def _of_teacher(own: Sequence[str] | None, saved: Sequence[str] | None) -> str:
    """The difference between the weights of the teachers, in words."""
    hashes = [found and found[1] for found in (own, saved)]
    return '' if hashes[0] == hashes[1] else f'its teacher is {saved}, and this one has {own}'


def _of_position(runner: Runner, meta: Mapping[str, Any]) -> str:
    """The fault in the position of a checkpoint, in words."""
    by_epoch = isinstance(runner.train_loop, EpochBasedTrainLoop)  # another loop has no epochs
    for unit, last in (
        ('epoch', runner.max_epochs if by_epoch else math.inf),
        ('iter', runner.max_iters),
    ):
        value = meta.get(unit)
        if type(value) is not int or value < 0:
            return f'its meta has {unit}={value!r}, which is no position'
        if value > last:
            return f'it is at {unit} {value}, and this one ends at {last} (train_cfg)'
    if by_epoch and meta['iter'] < meta['epoch']:
        return f'it is at epoch {meta["epoch"]} after {meta["iter"]} iterations'
    return ''


def _of_model(model: nn.Module, saved: Mapping[str, Tensor]) -> str:
    """The difference between a checkpoint's tensors and the model's, in words."""
    saved = {name.removeprefix('module.'): value for name, value in saved.items()}
    own = {name: value for name, value in model.state_dict().items() if isinstance(value, Tensor)}
    for name, value in own.items():
        if name not in saved:
            return f'it has no {name}, which the model has'
        if value.shape != saved[name].shape:
            return (
                f"its {name} is of the shape {tuple(saved[name].shape)}, and the model's "
                f'{tuple(value.shape)}'
            )
        if not _is_finite(saved[name]):
            return (
                f'its {name} has values that are not finite: the run had diverged, so take an '
                'earlier checkpoint'
            )
    foreign = [
        name for name, value in saved.items() if isinstance(value, Tensor) and name not in own
    ]
    return f'it has {foreign[0]}, which the model has not' if foreign else ''


def _of_optimizer(
    optimizer: torch.optim.Optimizer,
    saved: Any,
    recorded: Mapping[str, Any],
    own: Mapping[str, Any],
) -> str:
    """The difference between a checkpoint's optimizer and the run's, in words."""
    if not isinstance(saved, Mapping) or not isinstance(saved.get('state'), Mapping):
        return (
            'it has no state of the optimizer (default_hooks.checkpoint.save_optimizer=False '
            'saves none)'
        )
    for fact, words in (
        ('optimizer', "its optimizer is {}, and this config's {}"),
        ('parameters', OTHER_GROUPS),
    ):
        if fact in recorded and recorded[fact] != own[fact]:
            return words.format(recorded[fact], own[fact])
    groups, kind = saved.get('param_groups') or [], type(optimizer).__name__
    sizes = [[len(group['params']) for group in some] for some in (groups, optimizer.param_groups)]
    if sizes[0] != sizes[1]:
        return OTHER_GROUPS
    for group, mine in zip(groups, optimizer.param_groups, strict=True):
        lacking = [
            name for name, value in optimizer.defaults.items() if value and name not in group
        ]
        if lacking:  # what is off by default may be of another version of torch
            return f'its optimizer has no {lacking[0]}, which {kind} has'
        for name in mine.keys() & group.keys() - {'params'}:
            if (
                mine[name] is not None and _form(group[name]) != _form(mine[name])
            ) or not _is_finite(group[name]):
                return f'its optimizer has {name}={group[name]!r}'
    return _of_states(optimizer, saved['state'], recorded.get('states'))


def _of_states(optimizer: torch.optim.Optimizer, state: Mapping, states: int | None) -> str:
    """The difference between saved states of parameters, of which so many were, and the run's."""
    first, kind = list(_first_states(optimizer)), type(optimizer).__name__
    # MMEngine does not record it, and a parameter without a gradient has no state.
    if states is None:
        states = len(state) or any(first)
    if states != len(state):
        return (
            f'its optimizer has the state of {len(state)} parameters, and {int(states)} were saved'
        )
    # A fused optimizer reads moments of another shape past their end.
    for number, expected in enumerate(first):
        found = (
            {name: _form(value) for name, value in state[number].items()}
            if number in state
            else expected
        )
        if found != expected:
            return f'its optimizer has a state of the form {found} where {kind} has {expected}'
    if any(not _is_finite(value) for one in state.values() for value in one.values()):
        return (
            'its optimizer has a state that is not finite: the run had diverged, so take an '
            'earlier checkpoint'
        )
    return ''


def _first_states(optimizer: torch.optim.Optimizer) -> Iterator[dict[str, Any]]:
    """The form of each parameter's state after a step, found by a step on the meta device.

    Nothing is known of an optimizer that does not step there.
    """
    plain = dict(fused=False, foreach=False, capturable=False)
    groups = [
        {
            **group,
            **{name: plain[name] for name in plain.keys() & group.keys()},
            'params': [
                nn.Parameter(torch.empty(param.shape, dtype=param.dtype, device='meta'))
                for param in group['params']
            ],
        }
        for group in optimizer.param_groups
    ]
    for param in (params := list(chain.from_iterable(group['params'] for group in groups))):
        param.grad = torch.empty_like(param)
    shadow = copy(optimizer)
    shadow.param_groups, shadow.state = groups, defaultdict(dict)
    try:
        shadow.step()
    except Exception:  # noqa: BLE001  another library's optimizer
        return
    yield from (
        {name: _form(value) for name, value in shadow.state[param].items()} for param in params
    )


def _form(value: Any) -> Any:
    """The properties that must match: shape and kind of number, or the kind alone for a scalar."""
    if isinstance(value, Tensor):
        return (
            (tuple(value.shape), 'float' if value.is_floating_point() else 'int')
            if value.ndim
            else 'number'
        )
    if isinstance(value, (list, tuple)):
        return [_form(item) for item in value]
    return 'number' if isinstance(value, (int, float)) else type(value).__name__


def _is_finite(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(map(_is_finite, value))
    if isinstance(value, Tensor):
        return not value.is_floating_point() or bool(torch.isfinite(value).all())
    return not isinstance(value, float) or math.isfinite(value)


def _of_schedulers(schedulers: Any, saved: Any, iterations: int) -> str:
    """The difference between the states of a checkpoint's schedulers and the run's, in words."""
    own = list(map(scheduler_state, schedulers or ()))
    saved = saved or []  # a run without schedulers saves none
    if not isinstance(saved, Sequence) or len(saved) != len(own):
        return f'it has the state of {len(saved)} param_schedulers, and this config has {len(own)}'
    for mine, theirs in zip(own, saved, strict=True):
        if not isinstance(theirs, Mapping) or theirs.keys() != mine.keys():
            return 'it has the states of other param_schedulers'
        for name, value in theirs.items():
            if (
                (mine[name] is not None and _form(value) != _form(mine[name]))
                or not _is_finite(value)
                or (
                    # -1 until its `begin`.
                    name == 'last_step' and not -1 <= value <= iterations + 1
                )
            ):
                return f'its param_schedulers have {name}={value!r}'
    return ''
