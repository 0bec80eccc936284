"""The sections of a config, each compared with the constructor or function that takes it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, get_type_hints

import mmengine.registry as root
from mmengine.registry import Registry
from mmengine.runner import Runner
from mmengine.utils.dl_utils import set_multi_processing
from torch.utils.data import DataLoader

from vit_plugin.arguments import Signature, check, find_class
from vit_plugin.arguments.fields import Positive, PositiveInt
from vit_plugin.engine.compile import COMPILE_OPTIONS
from vit_plugin.engine.default_hooks import MMENGINE_DEFAULT_HOOKS, with_default_hooks
from vit_plugin.engine.faults.unreadable_hook import UnreadableHook
from vit_plugin.engine.lora_adapters import Lora
from vit_plugin.engine.optim.layer_decay import ParamwiseConfig
from vit_plugin.engine.sharding import Sharding
from vit_plugin.errors import ConfigError
from vit_plugin.suggestions import suggestion

from .data import LOADER_SECTIONS, check_dataset, check_metric

# The reader of each section of a config: the registry of its type, a class or function that takes
# it as arguments, or a signature with the keys that MMEngine reads from a dict.
CONFIG_SECTIONS: dict[str, Any] = {
    **dict.fromkeys(LOADER_SECTIONS, DataLoader),
    'train_cfg': root.LOOPS,
    'val_cfg': root.LOOPS,
    'test_cfg': root.LOOPS,
    'val_evaluator': root.METRICS,
    'test_evaluator': root.METRICS,
    'optim_wrapper': root.OPTIM_WRAPPERS,
    'param_scheduler': root.PARAM_SCHEDULERS,
    'custom_hooks': root.HOOKS,
    'visualizer': root.VISUALIZERS,
    'lora': Lora,
    'sharding': Sharding,
    'unreadable': UnreadableHook,
    'randomness': Runner.set_randomness,
    'auto_scale_lr': Signature(dict(base_batch_size=PositiveInt, enable=bool)),
    'compile': Signature({'blocks': bool, **dict.fromkeys(COMPILE_OPTIONS, Any)}),
    'env_cfg': Signature(
        dict(cudnn_benchmark=bool, mp_cfg=Any, dist_cfg=Any, resource_limit=PositiveInt)
    ),
}
# The same for sections inside sections.
NESTED_SECTIONS: dict[str, Any] = {
    'dataset': root.DATASETS,
    'datasets': root.DATASETS,
    'pipeline': root.TRANSFORMS,
    'sampler': root.DATA_SAMPLERS,
    'batch_sampler': root.DATA_SAMPLERS,
    'metrics': root.METRICS,
    'optimizer': root.OPTIMIZERS,
    'vis_backends': root.VISBACKENDS,
    'paramwise_cfg': Signature(get_type_hints(ParamwiseConfig, include_extras=True)),
    'mp_cfg': set_multi_processing,
    'dist_cfg': Signature(dict(timeout=Positive), takes_any=True),
}
# Sections that only training uses, although their names do not begin with `train`.
TRAINING_SECTIONS = ('optim_wrapper', 'param_scheduler')
# Checks of the files and packages that a component needs.
FILE_CHECKS = {root.DATASETS: check_dataset, root.METRICS: check_metric}
# Entries besides the type that MMEngine removes before it calls the constructor.
REMOVED_ENTRIES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(LOADER_SECTIONS, ('num_batch_per_epoch', 'disable_subprocess_warning')),
    'train_cfg': ('by_epoch',),
    'optim_wrapper': ('constructor', 'paramwise_cfg'),
    'param_scheduler': ('convert_to_iter_based',),
    'custom_hooks': ('priority',),
}


def check_sections(settings: Mapping[str, Any], loaders: Sequence[str] = LOADER_SECTIONS) -> None:
    """Check the types, names, values and files of all sections except the model.

    The model is checked when it is built, which is soon.

    Args:
        settings: the config.
        loaders: the data loaders that will be used; sections for others are not checked.

    Raises:
        ConfigError: for the first wrong entry. Missing arguments are left to the constructor.
    """
    scope = settings.get('default_scope')
    for name, reader in CONFIG_SECTIONS.items():
        value = settings.get(name)
        # False turns a section off, and True turns `compile` on.
        is_switch = isinstance(value, bool) and (name == 'compile' or not value)
        if isinstance(value, (int, float, str)) and not is_switch:
            switch = ', True or False' if name == 'compile' else ''
            raise ConfigError(f'{name}={value!r} must be a dict with settings{switch}.')
        split = 'train' if name in TRAINING_SECTIONS else name.partition('_')[0]
        loader = f'{split}_dataloader'
        if loader in loaders or loader not in LOADER_SECTIONS:
            _check_section(name, name, reader, value, scope)
    for name, hook in with_default_hooks(settings.get('default_hooks')).items():
        if isinstance(hook, Mapping) and 'type' not in hook:
            raise ConfigError(
                f'default_hooks.{name} has no type, and no hook of a run has this name; '
                f'{suggestion(name, {**with_default_hooks(None), **MMENGINE_DEFAULT_HOOKS})}'
            )
        _check_section(f'default_hooks.{name}', 'custom_hooks', root.HOOKS, hook, scope)


def _check_section(place: str, name: str, reader: Any, value: Any, scope: str | None) -> None:
    """Check a section, and the sections in it.

    Args:
        place: its place in the config, for messages.
        name: its key in ``CONFIG_SECTIONS`` or ``NESTED_SECTIONS``.
        reader: what reads it, see ``CONFIG_SECTIONS``.
        value: its entries, or a list of sections. Anything else is not checked.
        scope: the framework.
    """
    if isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            _check_section(f'{place}.{i}', name, reader, item, scope)
    if not isinstance(value, Mapping):
        return
    check_files = None
    if isinstance(reader, Registry):
        is_evaluator = reader is root.METRICS and 'metrics' in value
        registry = root.EVALUATOR if is_evaluator else reader
        default = 'Evaluator' if is_evaluator else _default_type(name, value)
        type_name, check_files = value.get('type', default), FILE_CHECKS.get(registry)
        reader = type_name and find_class(place, type_name, registry, scope)
    if reader is None:
        return
    signature = reader if isinstance(reader, Signature) else Signature.of(reader)
    arguments = {
        key: entry
        for key, entry in value.items()
        if key not in ('type', '_scope_', *REMOVED_ENTRIES.get(name, ()))
        and (key in signature.fields or not signature.takes_any)
    }
    # The sections in it are checked below. MMEngine adds required arguments when it builds, such
    # as the `dataset` of a sampler.
    fields = {
        key: Any if key in NESTED_SECTIONS else hint for key, hint in signature.fields.items()
    }
    check(place, replace(signature, fields=fields, required=[]), (), arguments)
    if check_files:
        check_files(place, value, reader)
    for key, entry in value.items():
        # Another constructor may have its own `paramwise_cfg`.
        if key in NESTED_SECTIONS and not (key == 'paramwise_cfg' and value.get('constructor')):
            _check_section(f'{place}.{key}', key, NESTED_SECTIONS[key], entry, scope)


def _default_type(name: str, value: Mapping[str, Any]) -> str | None:
    """MMEngine's class for a section without a type, or None."""
    if name == 'train_cfg':
        return 'EpochBasedTrainLoop' if value.get('by_epoch', True) else 'IterBasedTrainLoop'
    return 'OptimWrapper' if name == 'optim_wrapper' else None
