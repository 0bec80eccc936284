"""Charts of the labels of a data set: how many of each class; where boxes are and how large."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from anyfolder.pictures.palette import SERIES, hex_of

from .style import abbreviated, new_figure, shortened

MAX_NAMED_BARS = 40  # with more classes, a curve replaces bars and names
MAX_BAR_LETTERS = 22  # letters of a class name next to its bar
BINS = 50  # bins of a histogram, along each side


def draw_labels(
    counts: Mapping[str, np.ndarray],
    classes: Sequence[str],
    unit: str,
    title: str = '',
    boxes: np.ndarray | None = None,
) -> Figure:
    """Draw how often each class occurs, and where boxes are and how large.

    Args:
        counts: for each split, the number of each class, of shape (classes,).
        classes: names of the classes.
        unit: what was counted: images, objects or pixels.
        title: a line above all.
        boxes: left, top, right and bottom of boxes, as shares of the image, of shape (N, 4).
    """
    named = len(classes) <= MAX_NAMED_BARS
    height = max(4.0, 1.2 + 0.22 * len(classes)) if named else 4.5
    if boxes is not None and not len(boxes):
        boxes = None
    figure = new_figure(7 if boxes is None else 12, height)
    if title:
        figure.suptitle(title, fontsize='medium')
    if boxes is None:
        _draw_counts(figure.add_subplot(), counts, classes, unit)
        return figure
    bars, centers, sizes = figure.subplots(1, 3, width_ratios=(1.25, 1, 1))
    _draw_counts(bars, counts, classes, unit)
    _draw_centers(centers, boxes)
    _draw_sizes(sizes, boxes)
    return figure


def _draw_counts(
    axes: Axes, counts: Mapping[str, np.ndarray], classes: Sequence[str], unit: str
) -> None:
    axes.spines[['top', 'right']].set_visible(False)
    axes.set_xlabel(unit)
    if len(classes) > MAX_NAMED_BARS:
        for (split, numbers), color in zip(counts.items(), SERIES, strict=False):
            axes.plot(np.sort(numbers)[::-1], color=color, label=split)
        axes.set(xlabel=f'{len(classes)} classes, the most frequent first', ylabel=unit)
        axes.set_yscale('symlog')
    else:
        width = 0.8 / len(counts)
        for row, (split, numbers) in enumerate(counts.items()):
            y = np.arange(len(classes)) + (row - (len(counts) - 1) / 2) * width
            colors = [hex_of(label) for label in range(len(classes))]
            bars = axes.barh(y, numbers, width, color=colors, alpha=1 / (1 + row), label=split)
            axes.bar_label(bars, [*map(abbreviated, numbers)], padding=2, fontsize='x-small')
        names = [shortened(str(name), MAX_BAR_LETTERS) for name in classes]
        axes.set_yticks(
            range(len(classes)), names, fontsize='small' if len(classes) <= 20 else 'x-small'
        )
        axes.set_ylim(len(classes) - 0.4, -0.6)  # the first class is at the top
        axes.margins(x=0.15)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.xaxis.set_major_formatter(lambda number, _: abbreviated(number))
    if len(counts) > 1:
        handles = None
        if len(classes) <= MAX_NAMED_BARS:
            handles = [
                Patch(color='0.3', alpha=1 / (1 + row), label=split)
                for row, split in enumerate(counts)
            ]
        axes.legend(
            handles=handles,
            frameon=False,
            fontsize='small',
            loc='lower right',
            bbox_to_anchor=(1, 1),
            ncols=2,
        )


def _draw_centers(axes: Axes, boxes: np.ndarray) -> None:
    left, top, right, bottom = boxes.T
    _draw_histogram(axes, (left + right) / 2, (top + bottom) / 2)
    axes.set(xlabel='center, from the left', ylabel='center, from the top')
    axes.invert_yaxis()
    axes.set_title('where boxes are', fontsize='small')


def _draw_sizes(axes: Axes, boxes: np.ndarray) -> None:
    left, top, right, bottom = boxes.T
    _draw_histogram(axes, right - left, bottom - top)
    axes.set(xlabel='width', ylabel='height')
    axes.set_title('how large they are (1: the image)', fontsize='small')


def _draw_histogram(axes: Axes, x: np.ndarray, y: np.ndarray) -> None:
    axes.hist2d(x, y, bins=BINS, range=((0, 1), (0, 1)), cmap='Blues', norm=PowerNorm(0.5))
    axes.set(aspect='equal')
