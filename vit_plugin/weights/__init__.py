"""Read and write checkpoints of every format. This package handles names and arrays, not models."""

# isort: off
# This import comes first, since its error says what to install if MMEngine is missing.
from vit_plugin import registry  # noqa: F401
# isort: on

from .for_mmengine import reading_safely
from .formats import FORMATS, export
from .opening import Checkpoint, open_checkpoint
from .recognition import Recognized, recognize
from .report import Report

__all__ = [
    'FORMATS',
    'Checkpoint',
    'Recognized',
    'Report',
    'export',
    'open_checkpoint',
    'reading_safely',
    'recognize',
]
