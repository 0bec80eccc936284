"""A config as a whole: its parts, names and numbers, and the files that it reads."""

import logging
import os
import tempfile
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Annotated, Any

from mmengine.config import Config
from mmengine.registry import MODELS, OPTIM_WRAPPERS, OPTIMIZERS, RUNNERS
from pydantic import Field

from vit_plugin.arguments import Signature, check
from vit_plugin.arguments.fields import NotNegative, Positive, PositiveInt, Seed
from vit_plugin.errors import ConfigError
from vit_plugin.weights.folders import read_manifest

from .channels import check_channels
from .data import check_data, check_evaluator
from .names import nearest, registered

FRAMEWORKS = ('mmpretrain', 'mmdet', 'mmseg', 'mmengine')
LOADERS = ('train_dataloader', 'val_dataloader', 'test_dataloader')
# Besides the model, a run needs these parts for each data loader.
NEEDED = {
    'train_dataloader': ('train_cfg', 'optim_wrapper'),
    'val_dataloader': (),
    'test_dataloader': ('test_evaluator',),
}
LEVELS = ('CRITICAL', 'ERROR', 'WARNING', 'INFO', 'DEBUG')
# Names that MMEngine does not check itself.
REGISTRIES = {
    'runner_type': RUNNERS,
    'optim_wrapper.type': OPTIM_WRAPPERS,
    'optim_wrapper.optimizer.type': OPTIMIZERS,
}
OrNever = Annotated[int, Field(ge=-1)]
WORKERS_PER_CORE = 64
Workers = Annotated[int, Field(ge=0, le=WORKERS_PER_CORE * (os.cpu_count() or 1))]
# Numbers that all frameworks use in the same way.
NUMBERS = Signature(
    {
        'train_cfg.max_epochs': PositiveInt,
        'train_cfg.max_iters': PositiveInt,
        'train_cfg.val_interval': PositiveInt,
        **{f'{loader}.batch_size': PositiveInt for loader in LOADERS},
        **{f'{loader}.num_workers': Workers for loader in LOADERS},
        'optim_wrapper.optimizer.lr': NotNegative,
        'optim_wrapper.optimizer.weight_decay': NotNegative,
        'optim_wrapper.accumulative_counts': PositiveInt,
        'optim_wrapper.clip_grad.max_norm': NotNegative,
        'default_hooks.logger.interval': PositiveInt,
        'default_hooks.checkpoint.max_keep_ckpts': OrNever,
        'default_hooks.checkpoint.interval': OrNever,
        'randomness.seed': Seed,
        'schedule_length': PositiveInt,
        'auto_scale_lr.base_batch_size': PositiveInt,
        'env_cfg.dist_cfg.timeout': Positive,
    }
)


def check_config(cfg: Config, loaders: Sequence[str] = LOADERS) -> None:
    """Check a config before the run.

    Args:
        cfg: the config.
        loaders: the data loaders that will be used.

    Raises:
        ConfigError: if a part is missing, if a name is unknown, a number out of range or a learning
            rate without effect, if the work directory cannot be written, if the checkpoint, a data
            folder or an annotation file is missing, or if the neck or head does not fit the
            backbone.
    """
    settings = cfg.to_dict()
    _check_parts(settings, loaders)
    _check_names(settings)
    numbers = {field: _value_at(settings, field) for field in NUMBERS.fields}
    check(
        'The config',
        NUMBERS,
        (),
        {field: value for field, value in numbers.items() if value is not None},
    )
    if 'train_dataloader' in loaders:
        _check_rate(settings)
    _check_work_dir(cfg.work_dir)
    check_checkpoint(cfg.get('load_from'))
    check_checkpoint(cfg.get('begin_from'))
    for name in loaders:
        if cfg.get(name):
            check_data(f'{name}.dataset', cfg[name]['dataset'], cfg.get('default_scope'))
            check_evaluator(name.replace('dataloader', 'evaluator'), cfg)
    check_channels(cfg.model)


def _check_parts(settings: Mapping[str, Any], loaders: Sequence[str]) -> None:
    used = [loader for loader in loaders if settings.get(loader) or loader == loaders[0]]
    for name in (
        *(name for loader in used for name in (loader, *NEEDED[loader])),
        *(f'{loader}.dataset' for loader in used),
    ):
        value = _value_at(settings, name)
        if not isinstance(value, (Mapping, list)) or not value:
            raise ConfigError(f'{name}={value!r} must be a dict with settings.')


def _check_names(settings: Mapping[str, Any]) -> None:
    scope = settings.get('default_scope')
    if scope and scope not in MODELS.children and not find_spec(scope):
        raise ConfigError(
            f'default_scope={scope!r} is no package that is installed{nearest(scope, FRAMEWORKS)}'
        )
    level = settings.get('log_level', 'INFO')
    if not isinstance(level, str) or not isinstance(logging.getLevelName(level), int):
        raise ConfigError(f'log_level={level!r} is no level{nearest(str(level), LEVELS)}')
    for field, registry in REGISTRIES.items():
        name = _value_at(settings, field)
        with registry.switch_scope_and_registry(scope) as here:
            if isinstance(name, str) and here.get(name) is None:
                raise ConfigError(
                    f'{field}={name!r} is not registered{nearest(name, registered(here))}'
                )


def _check_rate(settings: Mapping[str, Any]) -> None:
    schedules, rate = (
        settings.get('param_scheduler'),
        _value_at(settings, 'optim_wrapper.optimizer.lr'),
    )
    for schedule in schedules if isinstance(schedules, (list, tuple)) else [schedules]:
        kind, highest = str(_value_at(schedule, 'type')), _value_at(schedule, 'eta_max')
        if 'OneCycle' in kind and _value_at(settings, 'auto_scale_lr.enable'):
            raise ConfigError(
                '--auto-scale-lr does not reach OneCycleLR, which sets the rate by itself: give '
                '--cfg-options param_scheduler.eta_max=RATE.'
            )
        if kind == 'OneCycleLR' and rate not in (None, highest):
            raise ConfigError(
                f'optim_wrapper.optimizer.lr={rate} has no effect, because OneCycleLR has its own '
                f'eta_max={highest}; set param_scheduler.eta_max, and lr to the same or not at all.'
            )


def _value_at(settings: Any, field: str) -> Any:
    """The value of a dotted name, or None."""
    for name in field.split('.'):
        settings = settings.get(name) if isinstance(settings, Mapping) else None
    return settings


def _check_work_dir(work_dir: str) -> None:
    try:
        os.makedirs(work_dir, exist_ok=True)
        with tempfile.TemporaryFile(dir=work_dir):
            pass
    except OSError as error:
        raise ConfigError(
            f'work_dir {work_dir!r} cannot be written ({error.strerror}); '
            'give another with --work-dir.'
        ) from error


def check_checkpoint(path: str | None) -> None:
    """Raise a ``ConfigError`` if a local path is neither a file nor a checkpoint folder."""
    if path is not None and '://' not in path:
        if os.path.isdir(path):
            read_manifest(path)
        elif not os.path.isfile(path):
            raise ConfigError(f'There is no checkpoint file {path!r}.')
