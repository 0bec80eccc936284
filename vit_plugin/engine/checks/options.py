"""Names in ``--cfg-options`` that nothing would read."""

import inspect
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from mmengine.config import Config
from mmengine.registry import HOOKS
from mmengine.runner import Runner

from vit_plugin.errors import ConfigError

from ..explain import nearest, parameters
from ..faults.unreadable import UnreadableHook
from ..lora import Lora
from ..sharding import Sharding

# Settings that MMEngine, the frameworks or our tools read in addition to the runner's arguments. Groups without a type
# list their settings here, because no constructor would refuse a wrong name.
FREE = {'custom_imports', 'model_wrapper_cfg', 'compile', 'activation_checkpointing', 'efficient_conv_bn_eval',
        'runner_type', 'strategy', 'schedule_length', 'tta_model', 'tta_pipeline', 'find_unused_parameters', 'launcher',
        'gpu_ids', 'optimize', 'begin_from'}
OURS = {'lora': Lora, 'sharding': Sharding, 'unreadable': UnreadableHook}  # what takes the settings of a group
GROUPS = {
    'env_cfg': {'cudnn_benchmark', 'mp_cfg', 'dist_cfg', 'resource_limit'},
    'auto_scale_lr': {'base_batch_size', 'enable'},
    'randomness': {'seed', 'deterministic', 'diff_rank_seed'},
    'optim_wrapper.paramwise_cfg': {
        'layer_decay_rate', 'custom_keys', 'bias_lr_mult', 'bias_decay_mult', 'norm_decay_mult', 'flat_decay_mult',
        'dwconv_decay_mult', 'dcn_offset_lr_mult', 'bypass_duplicate'},
}


def check_options(cfg: Config, options: Mapping[str, Any]) -> None:
    """Find names in ``--cfg-options`` that nothing would read.

    The constructor of a part with a type checks its own names. Elsewhere, a new name is refused if it is similar to an
    existing one. So is a preprocessor inside the model where the config has one beside it, which MMEngine would drop.

    Raises:
        ConfigError: gives the nearest name.
    """
    settings = cfg.to_dict()
    for option in options:
        at: Any = settings
        path: list[str] = []
        for name in option.split('.'):
            if isinstance(at, (list, tuple)):
                if not name.isdecimal() or int(name) >= len(at):
                    raise ConfigError(f'--cfg-options {option}: {".".join(path)} is a list, whose parts are named by '
                                      f'their numbers from 0 to {len(at) - 1}.')
                at = at[int(name)]
            elif isinstance(at, Mapping):
                if name not in at:
                    if path == ['model'] and name == 'data_preprocessor' and name in settings:
                        raise ConfigError(f'--cfg-options {option}: {name} stands beside the model in this config; '
                                          "leave out the 'model.'")
                    _check_new(option, '.'.join(path), name, at)
                at = at.get(name, {} if '.'.join((*path, name)) in (*OURS, *GROUPS) else None)
            elif at is None:
                break
            else:
                raise ConfigError(f'--cfg-options {option}: {".".join(path)}={at!r} has no settings of its own.')
            path.append(name)


def _check_new(option: str, path: str, name: str, siblings: Mapping) -> None:
    allowed = parameters(OURS[path]) if path in OURS else GROUPS.get(path)
    if not path:
        allowed = FREE | OURS.keys() | set(inspect.signature(Runner).parameters)
    if path.startswith('default_hooks.') and (hook := HOOKS.get(siblings.get('type', ''))):
        allowed = parameters(hook)
    if name in allowed if allowed else 'type' in siblings or not get_close_matches(name, list(siblings), 1, 0.8):
        return
    near = nearest(name, {*(allowed or ()), *siblings})
    raise ConfigError(f'--cfg-options {option}: {path or "a config"} has no setting {name!r}{near}')
