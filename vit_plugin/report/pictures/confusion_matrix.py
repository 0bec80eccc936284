"""Draw a confusion matrix."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure

from .style import abbreviated, new_figure, shortened

MAX_NUMBERED = 20  # with more classes, numbers are too small to read
MAX_NAMED = 60  # with more classes, names are too small, too
NUM_CONFUSED = 12  # confusions that are listed
LIST_WIDTH = 3.2  # width of that list in inches
NAME_LENGTH = 22  # letters of a name


def draw_confusion_matrix(
    matrix: np.ndarray,
    classes: Sequence[str] | None = None,
    unit: str = '',
    background: str = '',
    note: str = '',
) -> Figure:
    """Draw a confusion matrix. The color is the share of the true class, so rows sum to 1.

    Up to 20 classes have numbers, up to 60 have names. Above 20, the most frequent confusions are
    listed next to the matrix.

    Args:
        matrix: counts of true (rows) and predicted (columns) classes, of shape (classes, classes).
        classes: names of the classes.
        unit: what was counted, such as images.
        background: for a detector, the name of the last row (false positives) and column (missed
            objects). The color of this row is relative to the number of all true objects.
        note: a second line of the title.
    """
    count = len(matrix)
    named = [*classes, *([background] if background else [])] if classes else range(count)
    names = [shortened(str(name), NAME_LENGTH) for name in named]
    side = float(np.clip(2 + 0.45 * count, 3, 8)) if count <= MAX_NAMED else 6.5
    listed = count > MAX_NUMBERED
    figure = new_figure(side + 1 + (LIST_WIDTH if listed else 0), side)
    axes = figure.add_subplot()
    true_counts = matrix.sum(axis=1)
    if background:  # its row holds false positives, which have no true object
        true_counts[-1] = true_counts[:-1].sum()
    num_true = true_counts[-1] if background else true_counts.sum()
    shares = np.minimum(matrix / np.maximum(true_counts, 1)[:, None], 1)
    _draw_shares(figure, axes, shares)
    share = 100 * np.trace(matrix) / max(num_true, 1)
    title = ' '.join(filter(None, [f'{share:.2f} % of {num_true:,}', unit, 'right']))
    axes.set(xlabel='predicted', ylabel='true')
    axes.set_title('\n'.join(filter(None, [title, note])), fontsize='medium')
    if count <= MAX_NAMED:
        style: Any = dict(labels=names, fontsize=6 if listed else 'medium')
        axes.set_xticks(range(count), rotation=90 if classes else 0, **style)
        axes.set_yticks(range(count), **style)
    if listed:
        _list_confusions(figure, matrix, names)
    else:
        _write_counts(axes, matrix, shares)
    return figure


def _draw_shares(figure: Figure, axes: Axes, shares: np.ndarray) -> None:
    """Draw the shares as colors, with a color bar."""
    # The square root makes rare confusions visible.
    picture = axes.imshow(shares, cmap='Blues', norm=PowerNorm(gamma=0.5, vmin=0, vmax=1))
    figure.colorbar(
        picture,
        ax=axes,
        label='share of the true class',
        shrink=0.8,
        pad=0.02,
        ticks=[0, 0.01, 0.05, 0.2, 0.5, 1],
        format='{x:g}',
    )


def _write_counts(axes: Axes, matrix: np.ndarray, shares: np.ndarray) -> None:
    """Write each count that is not zero into its cell."""
    for row, column in zip(*matrix.nonzero(), strict=True):
        axes.text(
            column,
            row,
            abbreviated(matrix[row, column]),
            ha='center',
            va='center',
            fontsize='small',
            color='white' if shares[row, column] > 0.3 else 'black',
        )


def _list_confusions(figure: Figure, matrix: np.ndarray, names: Sequence[str]) -> None:
    """Write the most frequent confusions next to the matrix."""
    wrong = matrix * (1 - np.eye(len(matrix), dtype=matrix.dtype))
    most = np.argsort(-wrong, axis=None, kind='stable')[:NUM_CONFUSED]
    lines = [
        f'{names[true]} → {names[predicted]}: {abbreviated(wrong[true, predicted])}'
        for true, predicted in zip(*np.unravel_index(most, wrong.shape), strict=True)
        if wrong[true, predicted]
    ]
    left = 1 - LIST_WIDTH / figure.get_figwidth()
    figure.text(
        left + 0.15 / figure.get_figwidth(),
        0.5,
        '\n'.join(['most confused', '', *(lines or ['none'])]),
        va='center',
        fontsize=7,
        linespacing=1.5,
    )
    figure.set_layout_engine('constrained', rect=(0, 0, left, 1))
