"""Schedules of a run of another length: scaled when it begins, changed when it is resumed."""

import math
from collections.abc import Mapping, Sequence
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
# Attributes of a built scheduler that are its state. The others are its settings.
STATE = (
    'optimizer',
    'base_values',
    'last_step',
    '_global_step',
    '_last_value',
    # of ReduceOnPlateauParamScheduler
    'best',
    'num_bad_epochs',
    'cooldown_counter',
)


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


def continued(schedulers: Sequence[Any], planned: Sequence[Mapping[str, Any]]) -> list[str]:
    """Let resumed schedulers follow the config as far as that is exact.

    MMEngine restores all of a scheduler, also its settings, so that it would go by those of the
    interrupted run. A part that has not begun, there or here, takes the settings of the config. So
    a decay can follow a stable phase of any length (WSD, arXiv:2405.18392). A part that is over in
    both changes nothing any more.

    Args:
        schedulers: the resumed schedulers.
        planned: ``vars`` of each before it was resumed.

    Returns:
        A sentence on each part in progress whose settings differ: it keeps those of the checkpoint.
    """
    kept = []
    for number, (scheduler, mine) in enumerate(zip(schedulers, planned, strict=True)):
        theirs, step = vars(scheduler), scheduler._global_step
        settings = {name: value for name, value in mine.items() if name not in STATE}
        other = [name for name, value in settings.items() if theirs[name] != value]
        if not other or max(mine['end'], theirs['end']) <= step + 1:
            continue
        if min(mine['begin'], theirs['begin']) > step:
            theirs.update(settings)
        else:
            changes = ', '.join(f'{name}={theirs[name]}, not {mine[name]}' for name in other)
            kept.append(
                f'param_scheduler.{number} has begun and keeps the settings of the checkpoint '
                f'({changes}); to begin another schedule with its weights give --cfg-options '
                'load_from=FILE in place of --resume.'
            )
    return kept
