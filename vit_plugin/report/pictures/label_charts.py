"""The labels of a data set as charts: how many of each class; where and how large boxes are."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from anyfolder.pictures.palette import SERIES, hex_of

from .style import abbreviated, new_figure, shortened

MOST_NAMED = 40  # classes with a bar and a name
MAX_BAR_LETTERS = 22  # letters
BINS = 50


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
        boxes: left, top, right and bottom of boxes, as parts of the image, of shape (N, 4).
    """
    named = len(classes) <= MOST_NAMED
    height = max(4.0, 1.2 + 0.22 * len(classes)) if named else 4.5
    placed = boxes is not None and len(boxes) > 0
    figure = new_figure(12 if placed else 7, height)
    if title:
        figure.suptitle(title, fontsize='medium')
    if boxes is None or not len(boxes):
        _draw_counts(figure.add_subplot(), counts, classes, unit)
        return figure
    bars, places, sizes = figure.subplots(1, 3, width_ratios=(1.25, 1, 1))
    _draw_counts(bars, counts, classes, unit)
    _draw_boxes(places, sizes, boxes)
    return figure


def _draw_counts(
    axes: Axes, counts: Mapping[str, np.ndarray], classes: Sequence[str], unit: str
) -> None:
    axes.spines[['top', 'right']].set_visible(False)
    axes.set_xlabel(unit)
    if len(classes) > MOST_NAMED:
        for (split, numbers), color in zip(counts.items(), SERIES, strict=False):
            axes.plot(np.sort(numbers)[::-1], color=color, label=split)
        axes.set(xlabel=f'{len(classes)} classes, the most frequent first', ylabel=unit)
        axes.set_yscale('symlog')
    else:
        width = 0.8 / len(counts)
        for row, (split, numbers) in enumerate(counts.items()):
            places = np.arange(len(classes)) + (row - (len(counts) - 1) / 2) * width
            colors = [hex_of(label) for label in range(len(classes))]
            bars = axes.barh(places, numbers, width, color=colors, alpha=1 / (1 + row), label=split)
            axes.bar_label(bars, [*map(abbreviated, numbers)], padding=2, fontsize='x-small')
        names = [shortened(str(name), MAX_BAR_LETTERS) for name in classes]
        axes.set_yticks(
            range(len(classes)), names, fontsize='small' if len(classes) <= 20 else 'x-small'
        )
        axes.set_ylim(len(classes) - 0.4, -0.6)
        axes.margins(x=0.15)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.xaxis.set_major_formatter(lambda number, _: abbreviated(number))
    if len(counts) > 1:
        handles = None
        if len(classes) <= MOST_NAMED:
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


def _draw_boxes(places: Axes, sizes: Axes, boxes: np.ndarray) -> None:
    left, top, right, bottom = boxes.T
    for axes, (across, down), labels in (
        (
            places,
            ((left + right) / 2, (top + bottom) / 2),
            ('center, from the left', 'center, from the top'),
        ),
        (sizes, (right - left, bottom - top), ('width', 'height')),
    ):
        axes.hist2d(
            across, down, bins=BINS, range=((0, 1), (0, 1)), cmap='Blues', norm=PowerNorm(0.5)
        )
        axes.set(xlabel=labels[0], ylabel=labels[1], aspect='equal')
    places.invert_yaxis()
    places.set_title('where boxes are', fontsize='small')
    sizes.set_title('how large they are (1: the image)', fontsize='small')
