"""A config for a folder of data, in place of one written by hand: ``vit-plugin train --data FOLDER``."""

from .wish import TASKS, Wish
from .write import write_config

__all__ = ['TASKS', 'Wish', 'write_config']
