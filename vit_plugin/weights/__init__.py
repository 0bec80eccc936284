"""Read and write checkpoints of every format, as names and arrays, without models.

:func:`open_checkpoint` reads a file, an address or a name in a hub. :func:`recognize` finds the
format of its weights, one of ``FORMATS``, and gives them the names of our models; :func:`export`
does the reverse. Throughout, ``ours`` is a name or tensor of our models, and ``theirs`` one of the
format. ``published_*`` modules also build the config of a third-party model.
"""

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
