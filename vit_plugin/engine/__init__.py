"""What plugs into MMEngine's runner."""

from .amp import AmpOptimWrapper
from .report import ReportHook

__all__ = ['AmpOptimWrapper', 'ReportHook']
