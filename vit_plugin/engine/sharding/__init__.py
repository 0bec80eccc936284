"""The model divided among processes, by torch's ``fully_shard``."""

from .begin import begin_sharded, check_steps
from .ema import EMAHook
from .settings import Sharding, sharding_of
from .shard import bare, is_sharded, parts_to_shard, reshard, shard

__all__ = ['EMAHook', 'Sharding', 'bare', 'begin_sharded', 'check_steps', 'is_sharded', 'parts_to_shard', 'reshard',
           'shard', 'sharding_of']
