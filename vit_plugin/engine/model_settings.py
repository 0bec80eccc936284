"""Read the settings ``lora`` and ``sharding`` of a config, and reject what excludes them."""

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
DDP_OPTION = 'sharding replaces DDP, and the latter is an option of DDP; leave one of them out'
# A setting, another that it excludes, and the reason or remedy, which ends the error's sentence.
CONFLICTS = (
    (
        'lora',
        'sharding',
        'a frozen model needs neither gradients nor optimizer state to shard; leave sharding out, '
        'and the processes train by DDP',
    ),
    ('sharding', 'model_wrapper_cfg', DDP_OPTION),
    ('sharding', 'find_unused_parameters', DDP_OPTION),
    ('sharding', 'sync_bn', DDP_OPTION),
)


def read_model_setting(cfg: Mapping[str, Any], name: str) -> Any:
    """A setting of a config, as an instance of its class. None if the config does not have it.

    Raises:
        ConfigError: if its value is invalid, or if the config has a setting that it excludes.
    """
    if cfg.get(name) is None:
        return None
    setting_class, example = MODEL_SETTINGS[name]
    if not isinstance(cfg[name], Mapping):
        raise ConfigError(f'{name}={cfg[name]!r} must be a dict, such as {name}=dict({example}).')
    for setting, excluded, why in CONFLICTS:
        if setting == name and cfg.get(excluded) not in (None, False):
            raise ConfigError(f'{name} and {excluded} do not go together: {why}.')
    return setting_class(**cfg[name])
