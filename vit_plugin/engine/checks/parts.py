"""The parts that a run needs, and names that MMEngine does not check itself."""

import logging
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from mmengine.config import Config
from mmengine.registry import MODELS, OPTIM_WRAPPERS, OPTIMIZERS, RUNNERS

from vit_plugin.errors import ConfigError

from ..explain import nearest, registered

HOSTS = ('mmpretrain', 'mmdet', 'mmseg', 'mmengine')
# Besides the model, a run needs these parts for each data loader.
NEEDED = {
    'train_dataloader': ('train_cfg', 'optim_wrapper'), 'val_dataloader': (), 'test_dataloader': ('test_evaluator', )}
LEVELS = ('CRITICAL', 'ERROR', 'WARNING', 'INFO', 'DEBUG')
REGISTRIES = {'runner_type': RUNNERS, 'optim_wrapper.type': OPTIM_WRAPPERS, 'optim_wrapper.optimizer.type': OPTIMIZERS}


def check_parts(cfg: Config, loaders: Sequence[str]) -> None:
    """Check that the parts of a run exist, and names that MMEngine does not check itself.

    Raises:
        ConfigError: names the wrong part.
    """
    settings = cfg.to_dict()
    needed = {name: loader for loader in loaders if settings.get(loader) or loader == loaders[0]
              for name in (loader, *NEEDED[loader])}
    for name in (*needed, *(f'{loader}.dataset' for loader in loaders if settings.get(loader))):
        value = value_at(settings, name)
        if not isinstance(value, (Mapping, list)) or not value:
            raise ConfigError(f'{name}={value!r} must be a dict with settings.')
    scope = settings.get('default_scope')
    if scope and scope not in MODELS.children and not find_spec(scope):
        raise ConfigError(f'default_scope={scope!r} is no package that is installed{nearest(scope, HOSTS)}')
    level = settings.get('log_level', 'INFO')
    if not isinstance(level, str) or not isinstance(logging.getLevelName(level), int):
        raise ConfigError(f'log_level={level!r} is no level{nearest(str(level), LEVELS)}')
    for field, registry in REGISTRIES.items():
        name = value_at(settings, field)
        with registry.switch_scope_and_registry(scope) as here:
            if isinstance(name, str) and here.get(name) is None:
                raise ConfigError(f'{field}={name!r} is not registered{nearest(name, registered(here))}')


def value_at(settings: Any, field: str) -> Any:
    """The value of a dotted name, or None."""
    for name in field.split('.'):
        settings = settings.get(name) if isinstance(settings, Mapping) else None
    return settings
