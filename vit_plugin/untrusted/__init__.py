"""The config in a checkpoint is data of an unknown person: a table says what it may name."""

from .admission import UNTRUSTED_REMEDY, validate_untrusted
from .table import IMPORTED

__all__ = ['IMPORTED', 'UNTRUSTED_REMEDY', 'validate_untrusted']
