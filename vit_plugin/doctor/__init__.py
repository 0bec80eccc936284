"""Find mistakes in a config or a run, each with its remedy.

A check is a row of a table, and a function of components that are built once.
"""

from .checks import CHECKS, Check, diagnose
from .examined import ExaminedConfig
from .subject import examine

__all__ = ['CHECKS', 'Check', 'ExaminedConfig', 'diagnose', 'examine']
