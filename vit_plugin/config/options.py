"""Names in ``--cfg-options`` that nothing would read."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, get_type_hints

from mmengine.config import Config
from mmengine.registry import HOOKS
from mmengine.runner import Runner
from mmengine.utils.dl_utils import set_multi_processing

from vit_plugin.engine.compile import OPTIONS
from vit_plugin.engine.default_hooks import with_ours
from vit_plugin.engine.faults.unreadable import UnreadableHook
from vit_plugin.engine.float8 import Float8
from vit_plugin.engine.lora import Lora
from vit_plugin.engine.optim.layer_decay import ParamwiseConfig
from vit_plugin.engine.sharding import Sharding
from vit_plugin.errors import ConfigError

from .names import nearest, parameters

# Settings that are read by `cfg.get`, in addition to the runner's arguments: by our runner and
# tools, and by MMEngine's and the frameworks'. tests/config/test_options.py compares them with the
# sources.
OURS = {
    'begin_from',
    'find_unused_parameters',
    'float8',
    'lora',
    'optimize',
    'runner_type',
    'schedule_length',
    'sharding',
    'tta_model',
    'tta_pipeline',
    'unreadable',
    'verbose',
}
THEIRS = {
    'activation_checkpointing',
    'compile',
    'custom_imports',
    'efficient_conv_bn_eval',
    'env_cfg',
    'gpu_ids',
    'launcher',
    'model_wrapper_cfg',
    'strategy',
    'sync_bn',
}


# What reads the settings of a group without a type.
READERS: dict[str, Any] = {
    'lora': Lora,
    'float8': Float8,
    'sharding': Sharding,
    'unreadable': UnreadableHook,
    'randomness': Runner.set_randomness,
    'env_cfg.mp_cfg': set_multi_processing,
}
GROUPS = {
    **{group: parameters(reader) for group, reader in READERS.items()},
    'optim_wrapper.paramwise_cfg': set(get_type_hints(ParamwiseConfig)),
    # MMEngine reads these from dicts, without a signature.
    'env_cfg': {'cudnn_benchmark', 'mp_cfg', 'dist_cfg', 'resource_limit'},
    'auto_scale_lr': {'base_batch_size', 'enable'},
    'compile': {'blocks', *OPTIONS},
}


def check_options(cfg: Config, options: Mapping[str, Any]) -> None:
    """Find names in ``--cfg-options`` that nothing would read.

    The constructor of a part with a type checks its own names. Elsewhere, a new name is rejected if
    it is similar to an existing one. So is a preprocessor inside the model where the config has one
    next to it, which MMEngine would drop.

    Raises:
        ConfigError: names the nearest one.
    """
    settings = cfg.to_dict()
    for option in options:
        at: Any = settings
        path: list[str] = []
        for name in option.split('.'):
            at = {} if at is None else at
            if isinstance(at, (list, tuple)):
                if not name.isdecimal() or int(name) >= len(at):
                    raise ConfigError(
                        f'--cfg-options {option}: {".".join(path)} is a list, whose parts are '
                        f'named by their numbers from 0 to {len(at) - 1}.'
                    )
                at = at[int(name)]
            elif isinstance(at, Mapping):
                if name not in at:
                    if path == ['model'] and name == 'data_preprocessor' and name in settings:
                        raise ConfigError(
                            f'--cfg-options {option}: {name} is next to the model in this config; '
                            "leave out the 'model.'"
                        )
                    _check_new(option, '.'.join(path), name, at)
                at = at.get(name, {})
            else:
                raise ConfigError(
                    f'--cfg-options {option}: {".".join(path)}={at!r} has no settings.'
                )
            path.append(name)


def _hook_class(name: str, settings: Mapping) -> type | None:
    kind = with_ours({name: settings})[name].get('type')
    return HOOKS.get(kind) if isinstance(kind, str) else kind


def _check_new(option: str, path: str, name: str, siblings: Mapping) -> None:
    allowed = GROUPS.get(path) if path else OURS | THEIRS | parameters(Runner)
    group, _, hook = path.partition('.')
    if group == 'default_hooks' and hook and (kind := _hook_class(hook, siblings)):
        allowed = {'type', 'priority', *parameters(kind)}
    if (
        name in allowed
        if allowed
        else 'type' in siblings or not get_close_matches(name, list(siblings), 1, 0.8)
    ):
        return
    near = nearest(name, {*(allowed or ()), *siblings})
    raise ConfigError(f'--cfg-options {option}: {path or "a config"} has no setting {name!r}{near}')
