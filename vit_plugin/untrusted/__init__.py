"""Validate the config in a checkpoint from an unknown source against a table of allowed names."""

from .admission import UNTRUSTED_REMEDY, validate_untrusted
from .table import IMPORTABLE_MODULES

__all__ = ['IMPORTABLE_MODULES', 'UNTRUSTED_REMEDY', 'validate_untrusted']
