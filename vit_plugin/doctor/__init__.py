"""What a config or a run does that its author did not want, each with its cure.

A check is a row of a table and a function of what was built once.
"""

from .checks import CHECKS, Check, diagnose
from .examined import Examined
from .subject import examine

__all__ = ['CHECKS', 'Check', 'Examined', 'diagnose', 'examine']
