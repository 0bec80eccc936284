"""A config in a checkpoint is data from a stranger: what it names is admitted, or refused."""

from .admission import admit
from .closed import REMEDY, closed, files_closed

__all__ = ['REMEDY', 'admit', 'closed', 'files_closed']
