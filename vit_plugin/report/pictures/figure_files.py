"""Figures as files and as pixels."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from anyfolder.complete import replacing

from .style import for_matplotlib

COMPRESSION = 3  # PNG level: at the usual 6, writing takes longer than drawing


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure in the format of the suffix, completely or not at all."""
    options: dict[str, Any] = {}
    if path.suffix == '.png':
        options = dict(pil_kwargs=dict(compress_level=COMPRESSION))
    with replacing(path) as temporary:
        _use_plain_text(figure)
        figure.savefig(temporary, **options)


def as_pixels(figure: Figure) -> np.ndarray:
    """The pixels (height, width, 3) of a figure."""
    _use_plain_text(figure)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()


def _use_plain_text(figure: Figure) -> None:
    """Draw class names as plain text in any script; Matplotlib reads two ``$`` as a formula."""
    for text in figure.findobj(Text):
        text.set_parse_math(False)
        if not text.get_text().isascii():
            line, fonts = for_matplotlib(text.get_text())
            text.set(text=line, fontfamily=fonts)
