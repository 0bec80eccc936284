"""Figures as files and as pixels."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from vit_plugin.files.complete import replacing

COMPRESSION = 3  # of a PNG: at the usual 6 it takes longer to write than to draw
# A name in a script that the font lacks is drawn as boxes.
MISSING_GLYPH = 'Glyph .* missing from font'


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure in the format of the suffix, completely or not at all."""
    options: dict[str, Any] = {}
    if path.suffix == '.png':
        options = dict(pil_kwargs=dict(compress_level=COMPRESSION))
    with replacing(path) as temporary, warnings.catch_warnings():
        warnings.filterwarnings('ignore', MISSING_GLYPH)
        _take_dollars_for_text(figure)
        figure.savefig(temporary, **options)


def as_pixels(figure: Figure) -> np.ndarray:
    """The pixels (height, width, 3) of a figure."""
    _take_dollars_for_text(figure)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()


def _take_dollars_for_text(figure: Figure) -> None:
    """Names of classes are no formulas: ``$`` in two of them would be an error, or a formula."""
    for text in figure.findobj(Text):
        text.set_parse_math(False)
