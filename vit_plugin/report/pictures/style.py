"""Style of all pictures, and maps of patches over an image."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch.nn.functional as F
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from torch import Tensor

from vit_plugin.files.complete import replacing
from vit_plugin.files.untrusted_text import printable

# Perceptually uniform, and legible for those who do not see red or green apart.
COLORMAP = 'viridis'
DPI = 150
FINEST = 300  # of a photograph
HEAT = 'inferno'
OPACITY = 0.65
# A few patches can have most of the weight; all above this share of the pixels are equally bright.
BRIGHTEST = 0.995
COLUMNS = (5, 4, 3)
COMPRESSION = 3  # of a PNG: at the usual 6 it takes longer to write than to draw
# A name in a script that the font lacks is drawn as boxes.
MISSING_GLYPH = 'Glyph .* missing from font'


def new_figure(width: float, height: float) -> Figure:
    """A figure of a size in inches. Text is legible where a page shows it at its own size."""
    return Figure(figsize=(width, height), dpi=DPI, layout='constrained')


def new_axes(width: float, height: float) -> tuple[Figure, Axes]:
    """A figure of a size in inches with axes for a chart."""
    figure = new_figure(width, height)
    axes = figure.add_subplot()
    axes.spines[['top', 'right']].set_visible(False)
    return figure, axes


def panels(
    rows: int, columns: int, aspect: float, side: float, titled: bool = True
) -> tuple[Figure, list[Axes]]:
    """A figure with empty panels for pictures, row by row.

    Args:
        rows, columns: number of panels.
        aspect: width of a panel over its height.
        side: width of a panel in inches.
        titled: whether there is a line above each panel.
    """
    figure = new_figure(columns * side, rows * (side / aspect + 0.25 * titled))
    figure.set_layout_engine('constrained', w_pad=0.03, h_pad=0.03, wspace=0, hspace=0)
    axes = list(figure.subplots(rows, columns, squeeze=False).flat)
    for panel in axes:
        panel.set_axis_off()
    return figure, axes


def draw_over(
    image: np.ndarray,
    maps: Sequence[Tensor],
    titles: Sequence[str],
    covered: tuple[int, int],
    bright: float = 0.0,
    beside: bool = True,
) -> Figure:
    """Draw an image, then each map over it in gray, on its own scale from 0 or its lowest value.

    Args:
        image: the image (H, W, 3) in RGB.
        maps: maps (h, w) of patches.
        titles: what each map shows.
        covered: height and width in pixels that a map covers. The patches may reach beyond the
            image.
        bright: the smallest value that may be drawn brightest.
        beside: whether the image itself stands before the maps.
    """
    height, width = image.shape[:2]
    count = len(maps) + beside
    # The fewest empty panels.
    columns = min(min(COLUMNS, key=lambda columns: -count % columns), count)
    side = 8 / max(columns, 2.5)
    figure, axes = panels(-(-count // columns), columns, width / height, side)
    # As many dots as the image has pixels, if they are needed.
    figure.dpi = np.clip(width / side, DPI, FINEST)
    if beside:
        axes[0].imshow(image)
        axes[0].set_title('image', fontsize='small', pad=3)
    for panel, values, title in zip(axes[beside:], maps, titles, strict=False):
        panel.imshow(image.mean(axis=-1), cmap='gray', vmin=0, vmax=255)
        panel.set_title(printable(title), fontsize='small', pad=3)
        heat = F.interpolate(values[None, None].float().cpu(), covered, mode='bilinear')[
            0, 0, :height, :width
        ].numpy()
        highest = max(np.quantile(heat, BRIGHTEST), bright)
        panel.imshow(heat, cmap=HEAT, alpha=OPACITY, vmin=min(0, heat.min()), vmax=highest)
    return figure


def shortened(name: str, length: int) -> str:
    """A name of at most so many letters, which can be printed."""
    name = printable(name)
    return name if len(name) <= length else f'{name[: length - 1]}…'


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
