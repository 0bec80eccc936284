"""The settings that determine a run, and those that may change on resume.

A checkpoint records the former, and :mod:`.changed_run` compares them when a run is resumed.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from vit_plugin.weights.saved_settings import literals

from ..same_ranks import collect_config_facts

Changes = dict[str, tuple[Any, Any]]  # name -> value in the checkpoint, value in this run

# The sections of a config that determine the run. Everything else may change: the validation and
# its data, logs, work_dir, compile, sharding, env_cfg and so on. docs/cluster_reference.md has the
# same tables.
RUN_SECTIONS = (
    'model',
    'data_preprocessor',
    'train_dataloader',
    'train_cfg',
    'optim_wrapper',
    'param_scheduler',
    'schedule_length',
    'auto_scale_lr',
    'randomness',
    'lora',
)
# Settings within a section that may change: the length of the run, paths, initial weights, and what
# affects only speed. The batch, the seed and the schedules are compared as built.
CHANGEABLE_SETTINGS = {
    'train_cfg': (
        'type',
        'max_epochs',
        'max_iters',
        'val_begin',
        'val_interval',
        'dynamic_intervals',
    ),
    'train_dataloader': (
        'batch_size',
        'persistent_workers',
        'pin_memory',
        'prefetch_factor',
        'timeout',
        'worker_init_fn',
        'multiprocessing_context',
    ),
}
# Compared otherwise: a teacher by its weights, a seed as the run has drawn it.
FREE_VALUES = ('model.teacher', 'randomness.seed')
# Names that may change in any section.
FREE_ANYWHERE = ('data_root', 'init_cfg', 'num_workers', 'pretrained', 'test_cfg', 'with_cp')
# Hooks that only watch, save or end a run. All others determine it.
OBSERVING_HOOKS = (
    'CheckpointHook',
    'DetVisualizationHook',
    'DistSamplerSeedHook',
    'EarlyStoppingHook',
    'EmptyCacheHook',
    'IterTimerHook',
    'LoggerHook',
    'MemoryProfilerHook',
    'OptimizeHook',
    'ParamSchedulerHook',
    'PicturesHook',
    'PreemptionHook',
    'ProfilerHook',
    'ProgressHook',
    'ReportHook',
    'RuntimeInfoHook',
    'SegVisualizationHook',
    'VisualizationHook',
)
LEFT_OUT = 'left out'  # the value of a setting that a config lacks
SCHEDULE_SETTINGS = ('param_scheduler', 'schedule_length')


def flat_settings(cfg: Mapping[str, Any]) -> dict[str, str]:
    """The settings of a config that determine a run, as text, by their dotted names.

    Names of classes are without their scope: ``vit_plugin.EMAHook`` computes what ``EMAHook`` does.
    """
    used = {name: cfg[name] for name in RUN_SECTIONS if cfg.get(name) is not None}
    if not (cfg.get('auto_scale_lr') or {}).get('enable'):
        used.pop('auto_scale_lr', None)
    for name, hook in _hooks(cfg):
        used[name] = {key: value for key, value in hook.items() if key not in ('type', 'priority')}
    return {
        name: _class_name(value) if name.endswith(('.type', '.constructor')) else value
        for name, value in collect_config_facts(used).items()
        if name not in FREE_VALUES and not _is_free(name.split('.'))
    }


def _is_free(names: Sequence[str]) -> bool:
    """True if a setting may change on resume. ``names`` are the parts of its dotted name."""
    if len(names) > 1 and names[1] in CHANGEABLE_SETTINGS.get(names[0], ()):
        return True
    return any(name in FREE_ANYWHERE for name in names)


def _hooks(cfg: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The hooks that determine a run, by class and order."""
    numbers: dict[str, int] = {}
    for hook in (*(cfg.get('default_hooks') or {}).values(), *(cfg.get('custom_hooks') or ())):
        # Only the default hooks need no type, and all of them are observing.
        has_type = isinstance(hook, Mapping) and hook.get('type') is not None
        name = _class_name(repr(hook['type'])) if has_type else ''
        if name and name not in OBSERVING_HOOKS:
            numbers[name] = number = numbers.get(name, 0) + 1
            yield f'hooks.{name}' if number == 1 else f'hooks.{name}.{number}', hook


def _class_name(text: str) -> str:
    """The name of a class without its scope or module, from the text of a ``type``."""
    match = re.search(r'(\w+)\W*$', text)
    return match[1] if match else text


def changed_settings(cfg: Mapping[str, Any], meta: Mapping[str, Any]) -> Changes:
    """The settings that differ between a checkpoint's run and this one.

    For a checkpoint of MMEngine's runner, or of an earlier version, they are read from the text of
    its config. Values that are not plain are not compared.
    """
    saved = meta.get('run', {}).get('settings')
    if saved is None:
        saved_cfg = literals(meta.get('cfg'))
        saved = flat_settings(saved_cfg)
        cfg = {name: cfg[name] for name in cfg if name in saved_cfg}
    # Earlier versions recorded the default hooks without a type.
    saved = {name: value for name, value in saved.items() if not name.startswith('hooks.None')}
    return differing(saved, flat_settings(cfg), LEFT_OUT)


def differing(saved: Mapping[str, Any], current: Mapping[str, Any], absent: Any = None) -> Changes:
    """The entries that differ between two mappings, with both values.

    ``absent`` is the value of a missing entry. None means unknown, and never differs.
    """
    names = dict.fromkeys([*saved, *current])
    pairs = {name: (saved.get(name, absent), current.get(name, absent)) for name in names}
    return {name: pair for name, pair in pairs.items() if None not in pair and pair[0] != pair[1]}
