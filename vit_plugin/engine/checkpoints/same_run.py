"""Check, before anything is loaded, that a checkpoint has the complete state of the same run.

A wrong or damaged checkpoint must leave the weights and the state of the optimizer unchanged.
"""

from collections.abc import Mapping
from typing import Any

import torch
from mmengine.dist import all_gather_object
from mmengine.runner import EpochBasedTrainLoop, Runner
from torch import Tensor, nn

from vit_plugin.errors import ConfigError

from ..non_finite import find_non_finite
from ..sharding import without_ddp
from .changed_run import (
    EPOCH_LENGTH,
    apply_changes,
    are_alike,
    describe_changes,
    find_changes,
    move_position,
)
from .optimizer_forms import expected_states, structure, structures
from .state import State, identity, scheduler_state

FROM_WEIGHTS = 'start from its weights alone with --cfg-options load_from=FILE in place of --resume'


def check_same_run(runner: Runner, checkpoint: State, path: str) -> None:
    """Check that a checkpoint has the full state of a run, and that ``runner`` continues that run.

    The number of processes may differ, as long as together they take as many samples in an
    iteration. With ``resume_changed`` in the config, other differences in what determines the run
    are applied: the checkpoint is changed in place, see :mod:`.changed_run`.

    Raises:
        ConfigError: if this run cannot continue it, if it is damaged, or if there is a difference
            that is not accepted.
    """
    model, meta = without_ddp(runner.model), checkpoint['meta']
    _reject(
        path, _compare_position(runner, meta) or _compare_model(model, checkpoint['state_dict'])
    )
    changed = find_changes(runner, checkpoint)
    if changed and not runner.cfg.get('resume_changed'):
        raise ConfigError(
            f'What determines the run has changed since {path!r}: {describe_changes(changed)}; '
            'undo this, or add --resume-changed (resume_changed=True in a config) to apply it '
            f'from here on, or {FROM_WEIGHTS}.'
        )
    if EPOCH_LENGTH in changed:
        move_position(runner, checkpoint)
    _reject(path, _compare_end(runner, meta))
    if changed:
        apply_changes(runner, checkpoint, changed)
        runner.logger.warning(f'The run continues with changes: {describe_changes(changed)}.')
    _reject(
        path,
        _compare_optimizer(runner, checkpoint.get('optimizer'), meta.get('run', {}))
        or _compare_schedulers(runner, checkpoint.get('param_schedulers') or [], meta['iter']),
    )
    if broken := _find_broken_value(model, checkpoint):
        raise ConfigError(
            f'{path!r} is of a run that had diverged: its {broken} is not finite; resume from an '
            'earlier checkpoint.'
        )


def _reject(path: str, difference: str) -> None:
    if difference:
        raise ConfigError(
            f'{path!r} is of another run: {difference}; resume with the config that wrote it, or '
            f'{FROM_WEIGHTS}.'
        )


# Each function below returns the first difference in words, or ''.


def _compare_position(runner: Runner, meta: Mapping[str, Any]) -> str:
    """Check that a checkpoint's position is plausible, in this run's unit, and before its end."""
    by_epoch = isinstance(runner.train_loop, EpochBasedTrainLoop)  # other loops have no epochs
    for unit in ('epoch', 'iter'):
        value = meta.get(unit)
        if type(value) is not int or value < 0:
            return f'its meta has {unit}={value!r}, which is not a position'
    if by_epoch and meta['epoch'] > runner.max_epochs:
        return (
            f'it is at epoch {meta["epoch"]}, but this run ends at {runner.max_epochs} (train_cfg)'
        )
    if by_epoch and meta['iter'] < meta['epoch']:
        return f'it is at epoch {meta["epoch"]} after {meta["iter"]} iterations'
    recorded = meta.get('run', {})
    if 'epoch_length' in recorded and (recorded['epoch_length'] is not None) != by_epoch:
        if by_epoch:
            return 'it counts iterations, but this run counts epochs (train_cfg)'
        return 'it counts epochs, but this run counts iterations (train_cfg)'
    return ''


def _compare_end(runner: Runner, meta: Mapping[str, Any]) -> str:
    """Check that a checkpoint's position, after any changes, is not beyond this run's end."""
    if meta['iter'] > runner.max_iters:
        return f'it is at iter {meta["iter"]}, but this run ends at {runner.max_iters} (train_cfg)'
    return ''


def _compare_model(model: nn.Module, saved: Mapping[str, Tensor]) -> str:
    """Compare the names and shapes of a checkpoint's tensors with the model's."""
    saved_shapes, model_shapes = (
        {
            name.removeprefix('module.'): tuple(value.shape)
            for name, value in state.items()
            if isinstance(value, Tensor)
        }
        for state in (saved, model.state_dict())
    )
    for name in dict.fromkeys([*model_shapes, *saved_shapes]):
        if name not in saved_shapes:
            return f'it has no {name}, which the model has'
        if name not in model_shapes:
            return f'it has {name}, which the model lacks'
        if saved_shapes[name] != model_shapes[name]:
            shapes = saved_shapes[name], model_shapes[name]
            return f"its {name} has the shape {shapes[0]}, but the model's has {shapes[1]}"
    return ''


def _compare_optimizer(runner: Runner, saved: Any, recorded: Mapping[str, Any]) -> str:
    """Compare a checkpoint's optimizer with the run's."""
    if not isinstance(saved, Mapping) or not isinstance(saved.get('state'), Mapping):
        return (
            'it has no state of the optimizer (default_hooks.checkpoint.save_optimizer=False '
            'saves none)'
        )
    optimizer, current = runner.optim_wrapper.optimizer, identity(runner)
    class_name = current['optimizer']
    saved_class_name = recorded.get('optimizer', class_name)
    if saved_class_name != class_name:
        return f"its optimizer is {saved_class_name}, and this config's {class_name}"
    groups = saved.get('param_groups') or []
    saved_sizes = [len(group['params']) for group in groups]
    sizes = [len(group['params']) for group in optimizer.param_groups]
    if (
        recorded.get('parameters', current['parameters']) != current['parameters']
        or saved_sizes != sizes
    ):
        return (
            'its optimizer has other groups of parameters (optim_wrapper.paramwise_cfg, or frozen '
            'stages)'
        )
    for group, current_group in zip(groups, optimizer.param_groups, strict=True):
        for name, value in optimizer.defaults.items():
            # A newer torch may have more options, which do not matter if they are off.
            if value and name not in group:
                return f'its optimizer has no {name}, which {class_name} has'
        # Without `params`, whose numbers are not comparable.
        if wrong := _find_wrong_value(group, {**current_group, 'params': None}):
            return f'its optimizer has {wrong}'
    return _compare_states(optimizer, saved['state'], recorded.get('states'))


def _compare_states(
    optimizer: torch.optim.Optimizer, saved: Mapping, recorded_count: int | None
) -> str:
    """Compare the saved optimizer state with this run's parameters.

    Args:
        optimizer: the optimizer of this run.
        saved: the saved state of each parameter, by its number.
        recorded_count: the number of states that were saved, if the checkpoint records it.
    """
    expected_by_number = list(expected_states(optimizer))
    if recorded_count not in (None, len(saved)):
        return (
            f'its optimizer has the state of {len(saved)} parameters, but {recorded_count} were '
            'saved'
        )
    # MMEngine does not record the count. Since a parameter without a gradient has no state, any
    # count may be right, except 0 for an optimizer that keeps states.
    if recorded_count is None and not saved and any(expected_by_number):
        return 'its optimizer has no state of any parameter'
    # A fused optimizer would read beyond the end of moments of a smaller shape.
    for number, expected in enumerate(expected_by_number):
        actual = structures(saved[number]) if number in saved else expected
        if actual != expected:
            class_name = type(optimizer).__name__
            return (
                f'its optimizer has a state of the form {actual} where {class_name} has {expected}'
            )
    return ''


def _compare_schedulers(runner: Runner, saved: Any, iterations: int) -> str:
    """Compare the states of a checkpoint's schedulers with the run's."""
    schedulers = runner.param_schedulers or []
    if len(saved) != len(schedulers):
        return (
            f'it has the state of {len(saved)} param_schedulers, and this config has '
            f'{len(schedulers)}'
        )
    if not are_alike(schedulers, saved):
        return 'it has the states of other param_schedulers'
    for scheduler, state in zip(schedulers, saved, strict=True):
        wrong = _find_wrong_value(state, scheduler_state(scheduler))
        # -1 before the schedule begins, after that, at most one more than the number of iterations.
        if not wrong and not -1 <= state.get('last_step', -1) <= iterations + 1:
            wrong = f'last_step={state["last_step"]!r}'
        if wrong:
            return f'its param_schedulers have {wrong}'
    return ''


def _find_wrong_value(saved: Mapping[str, Any], current: Mapping[str, Any]) -> str:
    """The first saved value that is not finite or has another structure, as ``name=value``."""
    for name in current:
        if name not in saved:
            continue
        differs = current[name] is not None and structure(saved[name]) != structure(current[name])
        if differs or not _is_finite(saved[name]):
            return f'{name}={saved[name]!r}'
    return ''


def _is_finite(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(map(_is_finite, value))
    return not isinstance(value, (float, Tensor)) or bool(torch.as_tensor(value).isfinite().all())


def _find_broken_value(model: nn.Module, checkpoint: Mapping[str, Any]) -> str:
    """The name of a tensor with values that are not finite. Each process checks its part."""
    parameters = dict(model.named_parameters())
    names = all_gather_object(find_non_finite(checkpoint, parameters))
    return next(filter(None, names), '')
