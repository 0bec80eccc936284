"""Adapt schedules to another length of a run, at its start or when it is resumed."""

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from vit_plugin.arguments import fits
from vit_plugin.arguments.fields import Fraction

# Arguments of MMEngine's schedulers that count epochs or iterations.
LENGTH_ARGUMENTS = (
    'begin',
    'end',
    'T_max',
    'total_steps',
    'step_size',
    'milestones',
    'periods',
    'restarts',
)
# Factors that a warm-up starts from. A one-step warm-up would never undo its factor, so there it is
# set to 1.
WARM_UPS = ('start_factor', 'factor')
# Attributes of a built scheduler that are its state. The others are its settings.
STATE = (
    'optimizer',
    'base_values',
    'last_step',
    '_global_step',
    '_last_value',
    # state of ReduceOnPlateauParamScheduler
    'best',
    'num_bad_epochs',
    'cooldown_counter',
)


def scaled(scheduler: Any, length: int, made_for: int, by_epoch: bool, epoch_length: int) -> Any:
    """Scale the config of one or several schedulers to another length of the run.

    Arguments in the unit of the run (epochs or iterations) are scaled. In a run that counts epochs,
    a warm-up in iterations shrinks with a shorter run but never grows, and takes at most half of
    the run. Omitted arguments need no change, because their default is the end of the
    run. A warm-up that is scaled to one step has no effect, so that every run reaches the rate that
    was set. A factor out of range is left for MMEngine to reject.

    Args:
        scheduler: the config of a scheduler, or several in a list. Built schedulers are not
            changed.
        length: length of the run, in epochs or iterations.
        made_for: the length that the config is made for.
        by_epoch: whether the run counts epochs.
        epoch_length: number of iterations in an epoch.
    """
    if isinstance(scheduler, (list, tuple)):
        return [scaled(part, length, made_for, by_epoch, epoch_length) for part in scheduler]
    if not isinstance(scheduler, Mapping):
        return scheduler
    config, factor, last = dict(scheduler), length / made_for, math.inf
    if config.get('by_epoch', True) != by_epoch:
        factor = min(factor, 1.0)
        last = max(length * epoch_length // 2, 1) if by_epoch else math.inf
    # Converted here, before `_times` rounds, since MMEngine would convert whole epochs afterwards.
    if config.pop('convert_to_iter_based', False):
        config['by_epoch'], factor = False, factor * epoch_length
    for name in LENGTH_ARGUMENTS:
        if config.get(name) is not None:
            config[name] = _times(config[name], factor, 0 if name == 'begin' else 1, last)
    if 'end' in config:
        config['end'] = max(config['end'], config.get('begin', 0) + 1)
        if config['end'] == config.get('begin', 0) + 1:
            config |= {name: 1.0 for name in WARM_UPS if fits(Fraction, config.get(name))}
    if 'eta_max' in config:
        steps = length * (epoch_length if by_epoch and not config.get('by_epoch', True) else 1)
        config |= _one_cycle(
            config.get('total_steps') or config.get('end', steps) - config.get('begin', 0),
            config.get('pct_start', 0.3),
        )
    return config


def _one_cycle(steps: int, pct_start: float) -> dict[str, Any]:
    """Arguments of ``OneCycleLR`` that place its highest rate at a step.

    MMEngine 0.10.7 divides by zero if that is the first or only step.
    """
    if steps == 1:
        return dict(total_steps=2, pct_start=1.0, div_factor=1.0)
    return dict(total_steps=steps, pct_start=min(max(round(pct_start * steps), 2), steps) / steps)


def _times(value: Any, factor: float, least: int, most: float) -> Any:
    if isinstance(value, (list, tuple)):
        return [_times(part, factor, least, most) for part in value]
    return min(max(round(value * factor), least), most)


def follow_config(
    schedulers: Sequence[Any], saved: Sequence[dict[str, Any]]
) -> dict[str, tuple[Any, Any]]:
    """Let saved schedulers take the config's settings where the result equals an uninterrupted run.

    MMEngine restores a scheduler with its settings, and would keep those of the interrupted run. A
    schedule that has not begun, in either run, takes the settings of the config. So a decay can
    follow a stable phase of any length (WSD, arXiv:2405.18392). A schedule that has ended in both
    has no effect.

    Args:
        schedulers: the schedulers of the config, which have not stepped.
        saved: their saved states, changed in place.

    Returns:
        The differing settings of schedules in progress: name -> saved value, new value.
    """
    kept: dict[str, tuple[Any, Any]] = {}
    for number, (scheduler, state) in enumerate(zip(schedulers, saved, strict=True)):
        current, step = vars(scheduler), state['_global_step']
        settings = {
            name: value
            for name, value in current.items()
            if name not in STATE and not callable(value)
        }
        changed = [name for name, value in settings.items() if state[name] != value]
        # The rate of `step` is already set, and the next that a scheduler sets is of `step + 1`.
        has_ended = max(current['end'], state['end']) <= step + 1  # in both runs
        if not changed or has_ended:
            continue
        if min(current['begin'], state['begin']) > step:
            state.update(settings)
        else:
            kept |= {
                f'param_scheduler.{number}.{name}': (state[name], current[name]) for name in changed
            }
    return kept


def replay(
    schedulers: Sequence[Any], iterations: int, epochs: int, epoch_length: int | None
) -> None:
    """Step new schedulers up to this position, as a run would.

    Args:
        iterations, epochs: the position.
        epoch_length: iterations in an epoch; None if the run does not count epochs.
    """
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')  # the warning that no optimizer has stepped
        for iteration in range(1, iterations + 1):
            at_end = epoch_length and iteration % epoch_length == 0
            ended = bool(at_end) and iteration <= epochs * (epoch_length or 0)
            for scheduler in schedulers:
                if not scheduler.by_epoch or ended:
                    scheduler.step()
