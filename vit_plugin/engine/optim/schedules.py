"""Adapt learning rate schedules to another length of a run.

:func:`scale_schedules` changes their config before a run begins. When a run is resumed with another
length, :func:`follow_config` and :func:`replay` change the state of the built schedulers.
"""

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
# Factors that a warm-up starts from. A warm-up of one step would never undo its factor, so the
# factor is set to 1.
WARM_UP_FACTORS = ('start_factor', 'factor')
# Names of MMEngine's schedulers that end at the configured value begin with these.
RISING = ('Constant', 'Linear')
# Attributes of a built scheduler that are its state. The others are its settings.
STATE_ATTRIBUTES = (
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


def scale_schedules(
    scheduler: Any, length: int, schedule_length: int, by_epoch: bool, epoch_length: int
) -> Any:
    """Scale the config of one or several schedulers to another length of the run.

    Arguments that count epochs or iterations are scaled. In a run that counts epochs, a warm-up in
    iterations shrinks with a shorter run but never grows, and takes at most half of the run.
    Omitted arguments need no change, because their default is the end of the run. A warm-up that is
    scaled to one step has no effect, so that every run reaches the configured rate. A factor out of
    range is left for MMEngine to reject.

    Args:
        scheduler: the config of a scheduler, or several in a list. Built schedulers are not
            changed.
        length: length of the run, in epochs or iterations.
        schedule_length: the length of the run that the schedulers are made for.
        by_epoch: whether the run counts epochs.
        epoch_length: number of iterations in an epoch.
    """
    if isinstance(scheduler, (list, tuple)):
        return [
            scale_schedules(item, length, schedule_length, by_epoch, epoch_length)
            for item in scheduler
        ]
    if not isinstance(scheduler, Mapping):
        return scheduler
    config, factor, largest = dict(scheduler), length / schedule_length, math.inf
    if config.get('by_epoch', True) != by_epoch and _is_warm_up(config):
        factor = min(factor, 1.0)
        if by_epoch:
            largest = max(length * epoch_length // 2, 1)
    # Converted here, before `_scale_value` rounds, since MMEngine would convert rounded epochs. It
    # rejects to convert a schedule that counts iterations already.
    if config.get('by_epoch', True) and config.pop('convert_to_iter_based', False):
        config['by_epoch'], factor = False, factor * epoch_length
    for name in LENGTH_ARGUMENTS:
        if config.get(name) is not None:
            smallest = 0 if name == 'begin' else 1
            config[name] = _scale_value(config[name], factor, smallest, largest)
    if 'end' in config:
        config['end'] = max(config['end'], config.get('begin', 0) + 1)
        if config['end'] == config.get('begin', 0) + 1:
            config |= {name: 1.0 for name in WARM_UP_FACTORS if fits(Fraction, config.get(name))}
    if 'eta_max' in config:  # only OneCycleLR has it
        steps = length * (epoch_length if by_epoch and not config.get('by_epoch', True) else 1)
        config |= _one_cycle(
            config.get('total_steps') or config.get('end', steps) - config.get('begin', 0),
            config.get('pct_start', 0.3),
        )
    return config


def _is_warm_up(config: Mapping[str, Any]) -> bool:
    """True for a schedule from the first step on that raises the rate to the configured one."""
    kind = config.get('type')
    name = (kind if isinstance(kind, str) else getattr(kind, '__name__', '')).rpartition('.')[2]
    ends_at_rate = config.get('end_factor', 1.0) == 1.0  # a decay ends below
    begins_run = not config.get('begin')
    return begins_run and ends_at_rate and ('Warmup' in name or name.startswith(RISING))


def _one_cycle(steps: int, pct_start: float) -> dict[str, Any]:
    """Arguments of ``OneCycleLR`` that place its highest rate at a whole step after the first.

    MMEngine 0.10.7 divides by zero if the highest rate is at the first or only step.
    """
    if steps == 1:
        return dict(total_steps=2, pct_start=1.0, div_factor=1.0)
    return dict(total_steps=steps, pct_start=min(max(round(pct_start * steps), 2), steps) / steps)


def _scale_value(value: Any, factor: float, smallest: int, largest: float) -> Any:
    """A number, or each of a list, times a factor, rounded and within bounds."""
    if isinstance(value, (list, tuple)):
        return [_scale_value(item, factor, smallest, largest) for item in value]
    return min(max(round(value * factor), smallest), largest)


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
        The differing settings of schedules in progress, which keep the saved values: name -> saved
        value, value of the config.
    """
    kept: dict[str, tuple[Any, Any]] = {}
    for number, (scheduler, state) in enumerate(zip(schedulers, saved, strict=True)):
        current, step = vars(scheduler), state['_global_step']
        settings = {
            name: value
            for name, value in current.items()
            if name not in STATE_ATTRIBUTES and not callable(value)
        }
        changed = [name for name, value in settings.items() if state[name] != value]
        # The rate of `step` is already set; the next one that a scheduler sets is of `step + 1`.
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
    """Step new schedulers up to a position, as a run would.

    Args:
        schedulers: the schedulers, which have not stepped.
        iterations, epochs: the position: completed iterations and epochs.
        epoch_length: iterations in an epoch; None if the run does not count epochs.
    """
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')  # the warning that no optimizer has stepped
        for iteration in range(1, iterations + 1):
            # The position may be after the last iteration of an epoch, but before its end.
            ends_epoch = (
                epoch_length
                and iteration % epoch_length == 0
                and iteration <= epochs * epoch_length
            )
            for scheduler in schedulers:
                if not scheduler.by_epoch or ends_epoch:
                    scheduler.step()
