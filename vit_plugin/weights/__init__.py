"""Checkpoints of every format, in and out."""

from .formats import FORMATS
from .load import load_weights
from .report import Report

__all__ = ['FORMATS', 'Report', 'load_weights']
