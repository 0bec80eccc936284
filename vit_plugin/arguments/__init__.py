"""The arguments of constructors: their annotations, and one sentence for a wrong value."""

from .check import as_config_error, check, checked
from .signature import Signature, fits

__all__ = ['Signature', 'as_config_error', 'check', 'checked', 'fits']
