"""Shard the model over processes, with torch's ``fully_shard``."""

from .begin import begin_sharded, check_sharded_step
from .ema import EMAHook
from .shard import is_sharded, parts_to_shard, reshard, shard, without_ddp
from .sharding_options import Sharding

__all__ = [
    'EMAHook',
    'Sharding',
    'begin_sharded',
    'check_sharded_step',
    'is_sharded',
    'parts_to_shard',
    'reshard',
    'shard',
    'without_ddp',
]
