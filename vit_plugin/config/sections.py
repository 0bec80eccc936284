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
from vit_plugin.engine.default_hooks import OF_MMENGINE, with_default_hooks
from vit_plugin.engine.faults.unreadable_hook import UnreadableHook
from vit_plugin.engine.lora_adapters import Lora
from vit_plugin.engine.optim.layer_decay import ParamwiseConfig
from vit_plugin.engine.sharding import Sharding
from vit_plugin.errors import ConfigError
from vit_plugin.suggestions import suggestion

from .data import LOADER_SECTIONS, check_dataset, check_metric

# The receiver of each section of a config: the registry of its type, a class or function, or the
# keys that MMEngine reads from a dict.
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
    'compile': Signature(dict.fromkeys(('blocks', *COMPILE_OPTIONS), Any)),
    'env_cfg': Signature(
        dict.fromkeys(('cudnn_benchmark', 'mp_cfg', 'dist_cfg', 'resource_limit'), Any)
    ),
}
# The same for sections inside sections.
SECTION_PARTS: dict[str, Any] = {
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
# The data loader of a section whose name does not tell.
PURPOSES = {'optim_wrapper': 'train', 'param_scheduler': 'train'}
# Checks of what a component needs from the machine.
NEEDS = {root.DATASETS: check_dataset, root.METRICS: check_metric}
# Entries besides the type that MMEngine removes before it calls the constructor.
TAKEN_OUT: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(LOADER_SECTIONS, ('num_batch_per_epoch', 'disable_subprocess_warning')),
    'train_cfg': ('by_epoch',),
    'optim_wrapper': ('constructor', 'paramwise_cfg'),
    'param_scheduler': ('convert_to_iter_based',),
    'custom_hooks': ('priority',),
}


def check_sections(settings: Mapping[str, Any], loaders: Sequence[str] = LOADER_SECTIONS) -> None:
    """Check the types, names, values and files of all sections but the model, which is built soon.

    Args:
        settings: the config.
        loaders: the data loaders that will be used; sections for others are not checked.

    Raises:
        ConfigError: for the first wrong entry. Missing arguments are left to the constructor.
    """
    scope = settings.get('default_scope')
    for name, reader in CONFIG_SECTIONS.items():
        value = settings.get(name)
        is_switch = isinstance(value, bool) and (name == 'compile' or not value)
        if isinstance(value, (int, float, str)) and not is_switch:
            switch = ', True or False' if name == 'compile' else ''
            raise ConfigError(f'{name}={value!r} must be a dict with settings{switch}.')
        loader = f'{PURPOSES.get(name, name).partition("_")[0]}_dataloader'
        if loader in loaders or loader not in LOADER_SECTIONS:
            _check(name, name, reader, value, scope)
    for name, hook in with_default_hooks(settings.get('default_hooks')).items():
        if isinstance(hook, Mapping) and 'type' not in hook:
            raise ConfigError(
                f'default_hooks.{name} has no type, and no hook of a run has this name; '
                f'{suggestion(name, {**with_default_hooks(None), **OF_MMENGINE})}'
            )
        _check(f'default_hooks.{name}', 'custom_hooks', root.HOOKS, hook, scope)


def _check(place: str, name: str, reader: Any, value: Any, scope: str | None) -> None:
    """Check a section, and the sections in it.

    Args:
        place: its place in the config, for messages.
        name: its name.
        reader: what takes it.
        value: its entries, or a list of sections.
        scope: the framework.
    """
    if isinstance(value, (list, tuple)):
        for i, part in enumerate(value):
            _check(f'{place}.{i}', name, reader, part, scope)
    if not isinstance(value, Mapping):
        return
    needs = None
    if isinstance(reader, Registry):
        is_evaluator = reader is root.METRICS and 'metrics' in value
        registry = root.EVALUATOR if is_evaluator else reader
        default = 'Evaluator' if is_evaluator else _default_type(name, value)
        kind, needs = value.get('type', default), NEEDS.get(registry)
        reader = kind and find_class(place, kind, registry, scope)
    if reader is None:
        return
    signature = reader if isinstance(reader, Signature) else Signature.of(reader)
    given = {
        key: part
        for key, part in value.items()
        if key not in ('type', '_scope_', *TAKEN_OUT.get(name, ()))
        and (key in signature.fields or not signature.takes_any)
    }
    fields = {key: Any if key in SECTION_PARTS else hint for key, hint in signature.fields.items()}
    check(place, replace(signature, fields=fields, required=[]), (), given)
    if needs:
        needs(place, value, reader)
    for key, part in value.items():
        if key in SECTION_PARTS and not (key == 'paramwise_cfg' and value.get('constructor')):
            _check(f'{place}.{key}', key, SECTION_PARTS[key], part, scope)


def _default_type(name: str, value: Mapping[str, Any]) -> str | None:
    if name == 'train_cfg':
        return 'EpochBasedTrainLoop' if value.get('by_epoch', True) else 'IterBasedTrainLoop'
    return 'OptimWrapper' if name == 'optim_wrapper' else None
