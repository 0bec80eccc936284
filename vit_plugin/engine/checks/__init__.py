"""Check a config in a second for errors that would otherwise appear after minutes."""

from .config import LOADERS, check_checkpoint, check_config
from .data import dataset_class
from .model import check_channels, check_classes, check_head
from .numbers import check_numbers
from .options import check_options

__all__ = ['LOADERS', 'check_channels', 'check_checkpoint', 'check_classes', 'check_config', 'check_head',
           'check_numbers', 'check_options', 'dataset_class']
