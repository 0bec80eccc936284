"""Read and write checkpoints of every format. This package handles names and arrays, not models."""

# isort: off
from vit_plugin import registry  # noqa: F401  first, since it says what to install where MMEngine is missing
# isort: on

from .conversion import in_our_names
from .formats import FORMATS, export
from .report import Report
from .sources import open_weights, reading_safely

__all__ = ['FORMATS', 'Report', 'export', 'in_our_names', 'open_weights', 'reading_safely']
