"""A checkpoint with the config that it holds. Nothing in it is run."""

import os
import re
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

from mmengine.config import Config

from vit_plugin.config import apply_options, check_channels, check_checkpoint, read_config
from vit_plugin.engine.checkpoints.newest import newest_checkpoint
from vit_plugin.errors import ConfigError
from vit_plugin.weights.folders import is_checkpoint_folder
from vit_plugin.weights.sources import read_complete
from vit_plugin.weights.training import settings_of

# A name in a registry, maybe behind a framework's. MMEngine takes any other name with a dot for a path to code.
REGISTERED = re.compile(r'\w+|(mm[a-z]+\.[A-Z]|vit_plugin\.)\w+')

DETECTION = 'vit_plugin.detection'  # the module that recipes of detectors import


class Checkpoint(NamedTuple):
    """A checkpoint that was read."""
    path: str
    content: dict[str, Any]  # see vit_plugin.weights.sources.read_complete
    cfg: Config  # of its model


def open_checkpoint(path: str, config: str | None = None, options: Mapping[str, Any] | None = None) -> Checkpoint:
    """Read a checkpoint and its config.

    Args:
        path: a file, folder or URL, or the folder of a run, whose last checkpoint is taken.
        config: the config file, or a recipe's name. Default: the config that the checkpoint holds.
        options: settings to change in the config.

    Raises:
        ConfigError: if the checkpoint or config cannot be read, if there is no config, or if parts of the model do not
            fit together.
    """
    cfg = read_config(config, options) if config else None
    path = find_checkpoint(path)
    content = read_complete(path)
    if cfg is None:
        cfg = saved_config(content, path)
        apply_options(cfg, options, path)
    check_channels(cfg.model)
    return Checkpoint(path, content, cfg)


def find_checkpoint(path: str) -> str:
    """The path of a checkpoint, or the last checkpoint of the run in a folder.

    Raises:
        ConfigError: if there is none.
    """
    if path.endswith('.py') or path.startswith('vit_plugin::'):
        raise ConfigError(f'{path!r} is a config, where a checkpoint is expected; give the config with --config.')
    if '://' not in path and os.path.isdir(path) and not is_checkpoint_folder(path):
        newest = newest_checkpoint(path)
        if newest is None:
            raise ConfigError(f'The folder {path!r} has no manifest.json of a checkpoint and no checkpoints of a run; '
                              'give the file or folder of a checkpoint.')
        path = newest
    check_checkpoint(path)
    return path


def saved_config(content: Mapping[str, Any], path: str) -> Config:
    """The config in a checkpoint from MMEngine, read as plain values.

    Args:
        content: what is in the checkpoint.
        path: where it is, for messages.

    Raises:
        ConfigError: if there is none, if it names code by a path, or if it imports modules that are not imported.
    """
    meta = content.get('meta')
    settings = settings_of(meta.get('cfg') if isinstance(meta, Mapping) else None)
    if not isinstance(settings.get('model'), Mapping):
        raise ConfigError(f'The checkpoint {path!r} holds no config; give it with --config, or to predict with weights '
                          'alone, their arch with --arch, such as B/16.')
    foreign = _foreign_type(settings)
    imports = settings.get('custom_imports')
    modules = imports.get('imports') or () if isinstance(imports, Mapping) else ()
    if DETECTION in modules:
        import_module(DETECTION)
    missing = [name for name in modules if name not in sys.modules]
    if foreign or missing:
        named = f'the class {foreign!r} by its path' if foreign else f'the modules {missing} to import'
        raise ConfigError(f'The config in {path!r} names {named}, and no code is run that a checkpoint names; if you '
                          'trust it, give its config with --config.')
    # What the training began with is not what its checkpoint is used with.
    return Config({**settings, 'resume': False, 'load_from': None, 'launcher': 'none'})


def _foreign_type(value: Any) -> str | None:
    """The first type in a config that is no name of a registry."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            if isinstance(item, str) and re.fullmatch(r'(\w+_)?type|constructor', str(key)) and '.' in item and (
                    not REGISTERED.fullmatch(item)):
                return item
    items = value.values() if isinstance(value, Mapping) else value if isinstance(value, (list, tuple)) else ()
    return next((found for item in items if (found := _foreign_type(item))), None)
