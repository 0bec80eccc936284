"""Figures and axes in the style of all pictures."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vit_plugin.files.untrusted_text import printable

# Perceptually uniform, and legible for those who do not see red or green apart.
COLORMAP = 'viridis'
DPI = 150


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


def shortened(name: str, length: int) -> str:
    """A name of at most so many letters, which can be printed."""
    name = printable(name)
    return name if len(name) <= length else f'{name[: length - 1]}…'
