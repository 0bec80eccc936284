"""The arguments of constructors: their annotations, and one sentence for a wrong value."""

from .check import check, checked, refusing
from .signature import Signature, fits

__all__ = ['Signature', 'check', 'checked', 'fits', 'refusing']
