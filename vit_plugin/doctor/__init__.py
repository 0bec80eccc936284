"""Find mistakes in a config or a run, each with its remedy.

This is ``vit-plugin doctor``. :func:`examine` reads the config, :func:`diagnose` runs the checks in
:data:`CHECKS`. A check is a function that yields the faults of an :class:`ExaminedConfig`, which
builds the model, its weights, the optimizer and the data once for all checks.
"""

from .checks import CHECKS, Check, diagnose
from .examined import ExaminedConfig
from .subject import examine

__all__ = ['CHECKS', 'Check', 'ExaminedConfig', 'diagnose', 'examine']
