"""Figures, axes and texts in the style that all pictures share."""

from collections.abc import Sequence
from typing import Any

from matplotlib import ft2font
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from anyfolder.pictures.letters import composed, described, fonts_of
from anyfolder.terminal import printable

# Perceptually uniform, and legible with red-green color blindness.
COLORMAP = 'viridis'
DPI = 150
GAP = 0.04  # inches between pictures


def new_figure(width: float, height: float) -> Figure:
    """A figure of a size in inches. Its text is legible if it is shown at that size."""
    return Figure(figsize=(width, height), dpi=DPI, layout='constrained')


def charts(
    width: float, height: float, rows: int = 1, columns: int = 1, **options: Any
) -> tuple[Figure, list[Axes]]:
    """A figure of a size in inches with axes for charts. The options are those of ``subplots``."""
    figure = new_figure(width, height)
    axes = list(figure.subplots(rows, columns, squeeze=False, **options).flat)
    for axis in axes:
        axis.spines[['top', 'right']].set_visible(False)
        axis.grid(color='0.92')
    return figure, axes


def panels(
    aspects: Sequence[float],
    columns: int,
    panel_width: float,
    line: float = 0.0,
    top: float = 0.0,
    bottom: float = 0.0,
) -> tuple[Figure, list[Axes]]:
    """A figure with empty panels for pictures, row by row, and nothing around them.

    All sizes are known; Matplotlib's own layout takes longer than drawing.

    Args:
        aspects: for each row, the width of a panel over its height.
        columns: number of columns.
        panel_width: in inches.
        line: height of a title line above each panel in inches.
        top, bottom: space above and below all panels in inches.
    """
    heights = [panel_width / aspect for aspect in aspects]
    width = columns * (panel_width + GAP) - GAP
    height = top + sum(heights) + len(heights) * (line + GAP) - GAP + bottom
    figure = new_figure(width, height)
    figure.set_layout_engine('none')
    axes, y = [], height - top
    for row_height in heights:
        y -= line + row_height
        for column in range(columns):
            x = column * (panel_width + GAP)
            rectangle = (x / width, y / height, panel_width / width, row_height / height)
            axes.append(figure.add_axes(rectangle))
            axes[-1].set_axis_off()
        y -= GAP
    return figure, axes


def abbreviated(number: float) -> str:
    """A number as a short text: counts have at most five characters."""
    if number < 1e4:
        return f'{number:,g}'
    number = float(f'{number:.3g}')  # rounded first, so that 999,999 is 1M and not 1000k
    for scale, suffix in ((1e12, 'T'), (1e9, 'G'), (1e6, 'M')):
        if number >= scale:
            return f'{number / scale:g}{suffix}'
    return f'{number / 1e3:g}k'


def shortened(name: str, length: int, keep_end: bool = False) -> str:
    """Shorten a name to at most this many characters, printable and drawable.

    Its beginning is kept, or with ``keep_end`` its end.
    """
    name, _ = for_matplotlib(printable(name))
    if len(name) <= length:
        return name
    return f'…{name[len(name) - length + 1 :]}' if keep_end else f'{name[: length - 1]}…'


def for_matplotlib(text: str) -> tuple[str, list[str]]:
    """Text that Matplotlib can draw, and the names of the fonts for it."""
    letters = composed(text)
    fonts = fonts_of(letters)
    is_shaped = hasattr(ft2font, '__libraqm_version__')  # Matplotlib joins and orders the letters
    return described(letters, fonts, is_shaped), [name for name, _ in fonts]
