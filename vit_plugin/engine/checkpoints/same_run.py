"""Before loading, check that a checkpoint has the complete state of the same run."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from mmengine.runner import EpochBasedTrainLoop, Runner
from torch import Tensor, nn

from vit_plugin.errors import ConfigError

from ..sharding import unwrapped
from .changed_run import apply_changes, changes_of, in_words
from .optimizer_forms import first_states, form
from .state import identity, scheduler_state

WEIGHTS_ALONE = (
    'start from its weights alone with --cfg-options load_from=FILE in place of --resume'
)

OTHER_GROUPS = (
    'its optimizer has other groups of parameters (optim_wrapper.paramwise_cfg, or frozen stages)'
)


def check_same_run(runner: Runner, checkpoint: dict[str, Any], path: str) -> None:
    """Check that a checkpoint has the full state of a run, and that this one is the same run.

    The number of processes may differ, as long as together they take as many samples in an
    iteration. With ``resume_changed`` in the config, other differences in what determines the run
    are applied: the checkpoint is changed in place, see :mod:`.changed_run`.

    Raises:
        ConfigError: if it is of a run that this one cannot continue; if it is damaged; or if
            something differs that is not accepted.
    """
    recorded = checkpoint['meta'].get('run', {})
    _raise(path, _of_position(runner, checkpoint['meta']))
    _raise(path, _of_model(unwrapped(runner.model), checkpoint['state_dict']))
    if changed := changes_of(runner, checkpoint):
        if not runner.cfg.get('resume_changed'):
            raise ConfigError(
                f'What determines the run has changed since {path!r}: {in_words(changed)}; undo '
                'this, or add --resume-changed (resume_changed=True in a config) to apply it from '
                f'here on, or {WEIGHTS_ALONE}.'
            )
        apply_changes(runner, checkpoint, changed)
        recorded = checkpoint['meta'].get('run', {})
        runner.logger.warning(f'The run continues with changes: {in_words(changed)}.')
    _raise(
        path,
        _of_end(runner, checkpoint['meta'])
        or _of_optimizer(
            runner.optim_wrapper.optimizer, checkpoint.get('optimizer'), recorded, identity(runner)
        )
        or _of_schedulers(
            runner.param_schedulers, checkpoint.get('param_schedulers'), checkpoint['meta']['iter']
        ),
    )


def _raise(path: str, difference: str) -> None:
    if difference:
        raise ConfigError(
            f'{path!r} is of another run: {difference}; resume with the config that wrote it, or '
            f'{WEIGHTS_ALONE}.'
        )


def _of_position(runner: Runner, meta: Mapping[str, Any]) -> str:
    """The fault in the position of a checkpoint, in words."""
    by_epoch = isinstance(runner.train_loop, EpochBasedTrainLoop)  # another loop has no epochs
    for unit in ('epoch', 'iter'):
        value = meta.get(unit)
        if type(value) is not int or value < 0:
            return f'its meta has {unit}={value!r}, which is no position'
    if by_epoch and meta['epoch'] > runner.max_epochs:
        return (
            f'it is at epoch {meta["epoch"]}, and this one ends at {runner.max_epochs} (train_cfg)'
        )
    if by_epoch and meta['iter'] < meta['epoch']:
        return f'it is at epoch {meta["epoch"]} after {meta["iter"]} iterations'
    recorded = meta.get('run', {})
    if 'epoch_length' in recorded and (recorded['epoch_length'] is not None) != by_epoch:
        units = ('iterations', 'epochs')
        return f'it counts {units[not by_epoch]}, and this one {units[by_epoch]} (train_cfg)'
    return ''


def _of_end(runner: Runner, meta: Mapping[str, Any]) -> str:
    if meta['iter'] > runner.max_iters:
        return f'it is at iter {meta["iter"]}, and this one ends at {runner.max_iters} (train_cfg)'
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
            if (mine[name] is not None and form(group[name]) != form(mine[name])) or not _is_finite(
                group[name]
            ):
                return f'its optimizer has {name}={group[name]!r}'
    return _of_states(optimizer, saved['state'], recorded.get('states'))


def _of_states(optimizer: torch.optim.Optimizer, state: Mapping, states: int | None) -> str:
    """The difference between saved states of parameters, of which so many were, and the run's."""
    first, kind = list(first_states(optimizer)), type(optimizer).__name__
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
            {name: form(value) for name, value in state[number].items()}
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
                (mine[name] is not None and form(value) != form(mine[name]))
                or not _is_finite(value)
                or (
                    # -1 until its `begin`.
                    name == 'last_step' and not -1 <= value <= iterations + 1
                )
            ):
                return f'its param_schedulers have {name}={value!r}'
    return ''
