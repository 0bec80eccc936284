"""Scale the schedules of a recipe to a longer or shorter run."""

from collections.abc import Mapping
from typing import Any

# Arguments of MMEngine's schedulers that count epochs or iterations.
POSITIONS = ('begin', 'end', 'T_max', 'total_steps', 'step_size', 'milestones', 'periods', 'restarts')


def scaled(scheduler: Any, factor: float, by_epoch: bool, epoch_length: int) -> Any:
    """Scale the config of one or several schedulers to another length of the run.

    Arguments in the unit of the run (epochs or iterations) are scaled. In a run that counts epochs, a warm-up in
    iterations becomes shorter with the run, but not longer. Omitted arguments need no change, because their default is
    the end of the run.

    Args:
        scheduler: the config of a scheduler, or several in a list or by name. Built schedulers are not changed.
        factor: length of the run, divided by the length in the config.
        by_epoch: whether the run counts epochs.
        epoch_length: number of iterations in an epoch.
    """
    if isinstance(scheduler, (list, tuple)):
        return [scaled(part, factor, by_epoch, epoch_length) for part in scheduler]
    if not isinstance(scheduler, Mapping):
        return scheduler
    if 'type' not in scheduler:
        return {name: scaled(part, factor, by_epoch, epoch_length) for name, part in scheduler.items()}
    config = dict(scheduler)
    if config.get('by_epoch', True) != by_epoch:
        factor = min(factor, 1.)
    if config.pop('convert_to_iter_based', False):  # done here, because this keeps fractions of epochs
        config['by_epoch'], factor = False, factor * epoch_length
    for name in POSITIONS:
        if config.get(name) is not None:
            config[name] = _times(config[name], factor, 0 if name == 'begin' else 1)
    if 'end' in config:
        config['end'] = max(config['end'], config.get('begin', 0) + 1)
    return config


def _times(value: Any, factor: float, least: int) -> Any:
    if isinstance(value, (list, tuple)):
        return [_times(part, factor, least) for part in value]
    return max(round(value * factor), least)
