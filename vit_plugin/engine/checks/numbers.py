"""The numbers that every framework uses in the same way."""

import math
import os
from numbers import Integral, Real

from mmengine.config import Config

from vit_plugin.errors import ConfigError

from .parts import value_at

# Numbers in a config: smallest value and type.
LEAST = {
    'train_cfg.max_epochs': (1, int), 'train_cfg.max_iters': (1, int), 'train_cfg.val_interval': (1, int),
    'train_dataloader.batch_size': (1, int), 'val_dataloader.batch_size': (1, int),
    'test_dataloader.batch_size': (1, int), 'train_dataloader.num_workers': (0, int),
    'val_dataloader.num_workers': (0, int), 'test_dataloader.num_workers': (0, int),
    'optim_wrapper.optimizer.lr': (0, float), 'optim_wrapper.optimizer.weight_decay': (0, float),
    'optim_wrapper.accumulative_counts': (1, int), 'optim_wrapper.clip_grad.max_norm': (0, float),
    'default_hooks.logger.interval': (1, int), 'default_hooks.checkpoint.max_keep_ckpts': (-1, int),
    'default_hooks.checkpoint.interval': (-1, int), 'randomness.seed': (0, int), 'schedule_length': (1, int),
    'auto_scale_lr.base_batch_size': (1, int), 'env_cfg.dist_cfg.timeout': (1, float),
}

WORKERS_PER_CORE = 64


def check_numbers(cfg: Config) -> None:
    """Check the type and range of the numbers that all frameworks use in the same way.

    Raises:
        ConfigError: names the first wrong number.
    """
    settings = cfg.to_dict()
    for field, (least, kind) in LEAST.items():
        value = value_at(settings, field)
        if value is None:
            continue
        right = isinstance(value, Integral if kind is int else Real) and not isinstance(value, bool)
        if not right or not least <= value < math.inf:
            wanted = 'a whole number' if kind is int else 'a number'
            raise ConfigError(f'{field}={value!r} must be {wanted}, {least} or more.')
        if field.endswith('num_workers') and value > (most := WORKERS_PER_CORE * (os.cpu_count() or 1)):
            raise ConfigError(f'{field}={value} are more processes than this machine can start, which has '
                              f'{os.cpu_count()} cores; give at most {most}.')
