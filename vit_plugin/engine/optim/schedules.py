"""Scale the schedules of a recipe to a longer or shorter run."""

import math
from collections.abc import Mapping
from typing import Any

from vit_plugin.arguments import fits
from vit_plugin.arguments.fields import Fraction

# Arguments of MMEngine's schedulers that count epochs or iterations.
POSITIONS = (
    'begin',
    'end',
    'T_max',
    'total_steps',
    'step_size',
    'milestones',
    'periods',
    'restarts',
)
# Arguments that lower the rate at first. MMEngine raises it from the second step on, and never in a
# part of one step.
WARM_UPS = ('start_factor', 'factor')


def scaled(scheduler: Any, length: int, made_for: int, by_epoch: bool, epoch_length: int) -> Any:
    """Scale the config of one or several schedulers to another length of the run.

    Arguments in the unit of the run (epochs or iterations) are scaled. In a run that counts epochs,
    a warm-up in iterations becomes shorter with the run, but not longer. It ends in the middle of
    the run at the latest. Omitted arguments need no change, because their default is the end of the
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
        factor, last = (
            min(factor, 1.0),
            max(length * epoch_length // 2, 1) if by_epoch else math.inf,
        )
    # Done here, because this keeps fractions of epochs.
    if config.pop('convert_to_iter_based', False):
        config['by_epoch'], factor = False, factor * epoch_length
    for name in POSITIONS:
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
    """Arguments of ``OneCycleLR`` with which its highest rate is that of a step.

    MMEngine 0.10.7 divides by zero where the first or only step has it.
    """
    if steps == 1:
        return dict(total_steps=2, pct_start=1.0, div_factor=1.0)
    return dict(total_steps=steps, pct_start=min(max(round(pct_start * steps), 2), steps) / steps)


def _times(value: Any, factor: float, least: int, most: float) -> Any:
    if isinstance(value, (list, tuple)):
        return [_times(part, factor, least, most) for part in value]
    return min(max(round(value * factor), least), most)
