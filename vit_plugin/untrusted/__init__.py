"""Validate the config in a checkpoint from an unknown source against a table of allowed names."""

from .admission import UNTRUSTED_REMEDY, validate_untrusted
from .table import IMPORTED

__all__ = ['IMPORTED', 'UNTRUSTED_REMEDY', 'validate_untrusted']
