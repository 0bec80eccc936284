"""Check a config in a second for errors that would otherwise appear after minutes."""

from .config import LOADERS, check_checkpoint, check_config
from .model import check_channels, check_classes, check_head
from .options import check_options

__all__ = ['LOADERS', 'check_channels', 'check_checkpoint', 'check_classes', 'check_config', 'check_head',
           'check_options']
