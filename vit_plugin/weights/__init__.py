"""Checkpoints of every format, in and out."""

# isort: off
from vit_plugin import registry  # noqa: F401  first, since it says what to install where MMEngine is missing
# isort: on

from .conversion import in_our_names
from .formats import FORMATS, export
from .load import load_weights
from .report import Report

__all__ = ['FORMATS', 'Report', 'export', 'in_our_names', 'load_weights']
