"""Check the arguments of constructors by their annotations, with one sentence for a wrong value.

:func:`checked` decorates a class or function of this package. :class:`Signature` reads the
arguments of any class, :func:`check` compares given ones with it, and :mod:`.building` explains the
errors of MMEngine's registries.
"""

from .building import as_config_error, find_class, look_up_class, why_not_built
from .check import check
from .checked import checked
from .fields import fits
from .signature import Signature

__all__ = [
    'Signature',
    'as_config_error',
    'check',
    'checked',
    'find_class',
    'fits',
    'look_up_class',
    'why_not_built',
]
