"""A config for a folder of data, in place of one written by hand: ``vit-plugin train --data FOLDER``."""

from .request import Request
from .write import TASKS, write_config

__all__ = ['TASKS', 'Request', 'write_config']
