"""A config as a whole, in a second."""

import os
import tempfile
from collections.abc import Sequence

from mmengine.config import Config

from vit_plugin.errors import ConfigError
from vit_plugin.weights.folders import read_manifest

from .data import check_data, check_evaluator
from .model import check_channels
from .numbers import check_numbers
from .parts import check_parts

LOADERS = ('train_dataloader', 'val_dataloader', 'test_dataloader')


def check_config(cfg: Config, loaders: Sequence[str] = LOADERS) -> None:
    """Check a config before the run.

    Args:
        cfg: the config.
        loaders: the data loaders that will be used.

    Raises:
        ConfigError: if a number is out of range, if the work directory cannot be written, if the checkpoint, a data
            folder or an annotation file is missing, or if the neck or head does not fit the backbone.
    """
    check_parts(cfg, loaders)
    check_numbers(cfg)
    _check_work_dir(cfg.work_dir)
    check_checkpoint(cfg.get('load_from'))
    check_checkpoint(cfg.get('begin_from'))
    for name in loaders:
        if cfg.get(name):
            check_data(f'{name}.dataset', cfg[name]['dataset'], cfg.get('default_scope'))
            check_evaluator(name.replace('dataloader', 'evaluator'), cfg)
    check_channels(cfg.model)


def _check_work_dir(work_dir: str) -> None:
    try:
        os.makedirs(work_dir, exist_ok=True)
        with tempfile.TemporaryFile(dir=work_dir):
            pass
    except OSError as error:
        raise ConfigError(f'work_dir {work_dir!r} cannot be written ({error.strerror}); '
                          'give another with --work-dir.') from error


def check_checkpoint(path: str | None) -> None:
    """Raise a ``ConfigError`` if a local path is neither a file nor a checkpoint folder."""
    if path is not None and '://' not in path:
        if os.path.isdir(path):
            read_manifest(path)
        elif not os.path.isfile(path):
            raise ConfigError(f'There is no checkpoint file {path!r}.')
