"""Find differences between a checkpoint's run and this one, and apply them if the user accepts.

A difference is a name with two values: the checkpoint's and this run's, see
:data:`.run_settings.Changes`.
"""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from mmengine.hooks import EMAHook
from mmengine.optim import ReduceOnPlateauParamScheduler
from mmengine.runner import Runner

from vit_plugin.errors import ConfigError

from ..exact.loops import LAST_VALIDATED_KEY
from ..optim.schedules import follow_config, replay
from ..same_ranks import BYTES_FACT, CONTENT_FACT, SAMPLE_COUNT_FACT
from .optimizer_forms import expected_states, structures
from .run_settings import SCHEDULE_SETTINGS, Changes, changed_settings, differing
from .state import State, identity, key_by_names, scheduler_state

MAX_NAMED_CHANGES, VALUE_CHARACTERS = 6, 60  # limits of a message
# Prefixes of settings that need the optimizer and the schedules to be adapted.
OPTIMIZER_SETTINGS = 'optim_wrapper', 'auto_scale_lr', *SCHEDULE_SETTINGS
# A difference in one of these explains differences in the next ones, which are not mentioned then.
DATA_FACTS = SAMPLE_COUNT_FACT, CONTENT_FACT, BYTES_FACT
EPOCH_LENGTH = 'iterations in an epoch'
SEED = 'randomness.seed'


def find_changes(runner: Runner, checkpoint: Mapping[str, Any]) -> Changes:
    """The differences that matter between this run and the one that saved a checkpoint.

    Schedules that have not begun never differ: in ``checkpoint``, they get the settings of the
    config. If only the length of the run changed, a schedule in progress keeps its settings, with a
    warning; with ``resume_changed`` in the config, it counts as a difference.
    """
    meta = checkpoint['meta']
    recorded, current = meta.get('run', {}), identity(runner)
    settings = changed_settings(runner.cfg, meta)
    schedule_changes = {
        name: pair for name, pair in settings.items() if name.startswith(SCHEDULE_SETTINGS)
    }
    changed = {name: pair for name, pair in settings.items() if name not in schedule_changes}
    changed |= differing(
        _collect_facts(recorded, meta.get('seed')),
        _collect_facts(current, runner._randomness_cfg.get('seed')),
    )
    data_facts = [f'{prefix}train_dataloader' for prefix in DATA_FACTS]
    for explained in [name for name in data_facts if name in changed][1:]:
        changed.pop(explained)
    teachers = recorded.get('teacher'), current['teacher']
    # A teacher is a pair of its name and the hash of its weights; only the hashes count.
    if len({teacher and teacher[1] for teacher in teachers}) > 1:
        changed['the teacher'] = teachers
    schedulers, saved = runner.param_schedulers or (), checkpoint.get('param_schedulers') or ()
    if not are_alike(schedulers, saved):
        # With an unchanged config this is damage, which a later check finds.
        return changed | schedule_changes
    kept = follow_config(schedulers, saved)
    if schedule_changes or runner.cfg.get('resume_changed'):
        changed |= kept
    elif kept and not changed:
        runner.logger.warning(
            'The length of the run changed, and schedules in progress stay as they were '
            f'({describe_changes(kept)}); with --resume-changed they become those of the new '
            'length.'
        )
    return changed


def _collect_facts(run: Mapping[str, Any], seed: int | None) -> dict[str, Any]:
    """Facts beyond the settings that determine a run."""
    return {
        'samples in an iteration': run.get('batch'),
        EPOCH_LENGTH: run.get('epoch_length'),
        SEED: seed,
        **run.get('data', {}),
    }


def are_alike(schedulers: Sequence[Any], saved: Sequence[Any]) -> bool:
    """True if the saved states are of schedulers of the same classes, as far as the states show."""
    return len(schedulers) == len(saved) and all(
        isinstance(state, Mapping) and state.keys() == scheduler_state(scheduler).keys()
        for scheduler, state in zip(schedulers, saved, strict=True)
    )


def describe_changes(changed: Changes) -> str:
    """The changes as text, with both values."""
    texts = [
        f'{name}: {before!s:.{VALUE_CHARACTERS}}, now {now!s:.{VALUE_CHARACTERS}}'
        for name, (before, now) in changed.items()
    ]
    if len(texts) > MAX_NAMED_CHANGES:
        texts[MAX_NAMED_CHANGES:] = [f'and {len(texts) - MAX_NAMED_CHANGES} more']
    return '; '.join(texts)


def apply_changes(runner: Runner, checkpoint: State, changed: Changes) -> None:
    """Change a checkpoint as if this config had applied from the start.

    The weights stay, but without an ``EMAHook``, the trained weights replace the EMA weights. The
    optimizer gets the settings of this config. Parameters in both keep their moments, if the
    optimizer still has such moments. The schedules are moved to the checkpoint's position.

    Raises:
        ConfigError: if a schedule that follows a metric would have to be replayed.
    """
    meta = checkpoint['meta']
    if not any(isinstance(hook, EMAHook) for hook in runner.hooks):
        for name, value in checkpoint.pop('ema_state_dict', {}).items():
            if name.startswith('module.'):  # but not `steps`
                checkpoint['state_dict'][name.removeprefix('module.')] = value
    if SEED in changed:
        meta['seed'] = None  # MMEngine would set the saved seed again
    recorded, current = meta.get('run', {}), identity(runner)
    names = recorded.get('parameters', current['parameters'])
    if not (
        EPOCH_LENGTH in changed
        or names != current['parameters']
        or any(name.startswith(OPTIMIZER_SETTINGS) for name in changed)
    ):
        return
    schedulers = runner.param_schedulers or []
    if any(isinstance(scheduler, ReduceOnPlateauParamScheduler) for scheduler in schedulers):
        raise ConfigError(
            'param_scheduler: ReduceOnPlateau follows a metric, so changes of the optimizer and '
            'its schedules cannot be applied; start from the weights alone with --cfg-options '
            'load_from=FILE in place of --resume.'
        )
    length = current['epoch_length']
    replay(schedulers, meta['iter'], meta['epoch'] if length else 0, length)
    checkpoint['param_schedulers'] = list(map(scheduler_state, schedulers))
    checkpoint['optimizer'] = _adapt_optimizer(
        runner, checkpoint['optimizer'], names, current['parameters']
    )
    states = len(checkpoint['optimizer']['state'])
    meta['run'] = {**recorded, **current, 'states': states}


def _adapt_optimizer(
    runner: Runner, saved: Mapping[str, Any], saved_names: list, names: list
) -> dict:
    """The state of this config's optimizer, with the saved moments of the parameters that it has.

    Args:
        runner: the run.
        saved: the saved state of the optimizer, by numbers of parameters.
        saved_names, names: the names of the parameters of each group, in the checkpoint and here.
    """
    wrapper = runner.optim_wrapper
    fresh, numbers = wrapper.state_dict(), {name: i for i, name in enumerate(chain(*names))}
    expected = list(expected_states(wrapper.optimizer))  # empty if unknown
    state = {}
    for name, moments in key_by_names(saved, saved_names)['state'].items():
        number = numbers.get(name)
        if number is not None and (not expected or expected[number] == structures(moments)):
            state[number] = moments
    if scaler := fresh.get('loss_scaler'):
        saved_scaler = saved.get('loss_scaler', {})
        if saved_scaler.keys() == scaler.keys():
            fresh['loss_scaler'] = saved_scaler
    lost = len(saved['state']) - len(state)
    if lost:
        runner.logger.warning(f'The optimizer forgets the moments of {lost} parameters.')
    return {**fresh, 'state': state}


def move_position(runner: Runner, checkpoint: State) -> None:
    """Give a checkpoint the iteration of its position in epochs of the new length.

    The epoch stays, and the number of samples seen in it. The new iteration counts as validated
    exactly if the old one did.
    """
    meta, recorded, current = checkpoint['meta'], checkpoint['meta']['run'], identity(runner)
    length, old_iter = current['epoch_length'], meta['iter']
    samples = (old_iter - meta['epoch'] * recorded['epoch_length']) * (recorded['batch'] or 0)
    new_iter = meta['epoch'] * length + min(samples // (current['batch'] or 1), length)
    meta['iter'] = new_iter
    info = checkpoint['message_hub']['runtime_info']
    validated = info.get(LAST_VALIDATED_KEY, 0)
    info[LAST_VALIDATED_KEY] = new_iter if validated >= old_iter else min(validated, new_iter - 1)
