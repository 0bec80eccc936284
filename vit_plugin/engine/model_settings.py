"""The settings ``lora`` and ``sharding`` of a config, and which of them exclude each other."""

from collections.abc import Mapping
from typing import Any

from vit_plugin.errors import ConfigError

from .lora_adapters import Lora
from .sharding import Sharding

# Name in a config -> class of the setting, and an example.
MODEL_SETTINGS = {
    'lora': (Lora, 'r=8, alpha=16'),
    'sharding': (Sharding, "group='node'"),
}
DDP = 'sharding takes the place of DDP, whose option this is; leave one of them out'
# Two settings that exclude each other, and why.
CONFLICTS = {
    ('lora', 'sharding'): (
        'a frozen model needs neither gradients nor optimizer state to shard; leave sharding out, '
        'and the processes train by DDP'
    ),
    ('sharding', 'model_wrapper_cfg'): DDP,
    ('sharding', 'find_unused_parameters'): DDP,
    ('sharding', 'sync_bn'): DDP,
}


def model_setting(cfg: Mapping[str, Any], name: str) -> Any:
    """A setting of a config, as an instance of its class. None if the config does not have it.

    Raises:
        ConfigError: if it is wrong, or excluded by another setting.
    """
    if cfg.get(name) is None:
        return None
    kind, example = MODEL_SETTINGS[name]
    if not isinstance(cfg[name], Mapping):
        raise ConfigError(f'{name}={cfg[name]!r} must be a dict, such as {name}=dict({example}).')
    for (one, other), why in CONFLICTS.items():
        if one == name and cfg.get(other) not in (None, False):
            raise ConfigError(f'{name} and {other} do not go together: {why}.')
    return kind(**cfg[name])
