"""The confusion matrix of a classifier."""

from collections.abc import Sequence

import numpy as np
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure

from .style import new_figure

MAX_NUMBERED = 20  # with more classes, numbers are too small to read
MAX_NAMED = 60
NUM_CONFUSED = 12
LIST_WIDTH = 3.2  # in inches
NAME_LENGTH = 22


def draw_confusion_matrix(matrix: np.ndarray, classes: Sequence[str] | None = None) -> Figure:
    """Draw which classes are taken for which. The colour is the share of the true class, in rows.

    Up to 20 classes have numbers, up to 60 have names. Above 20, the most frequent confusions are listed next to the
    matrix.

    Args:
        matrix: counts of true (rows) and predicted (columns) classes, of shape (classes, classes).
        classes: names of the classes.
    """
    count = len(matrix)
    names = [name if len(name) <= NAME_LENGTH else f'{name[:NAME_LENGTH - 1]}…'
             for name in map(str, classes or range(count))]
    side = float(np.clip(2 + 0.45 * count, 3, 8)) if count <= MAX_NAMED else 6.5
    listed = count > MAX_NUMBERED
    figure = new_figure(side + 1 + LIST_WIDTH * listed, side)
    axes = figure.add_subplot()
    shares = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    picture = axes.imshow(shares, cmap='Blues', norm=PowerNorm(0.5, 0, 1))  # the root, so that rare confusions show
    figure.colorbar(picture, ax=axes, label='share of the true class', shrink=0.8, pad=0.02,
                    ticks=[0, 0.01, 0.05, 0.2, 0.5, 1], format='{x:g}')
    accuracy = 100 * np.trace(matrix) / max(matrix.sum(), 1)
    axes.set(xlabel='predicted', ylabel='true', title=f'{accuracy:.2f} % of {matrix.sum()} right')
    if count <= MAX_NAMED:
        size = 'medium' if count <= MAX_NUMBERED else 6
        axes.set_xticks(range(count), names, rotation=90 if classes else 0, fontsize=size)
        axes.set_yticks(range(count), names, fontsize=size)
    if count <= MAX_NUMBERED:
        for row, column in zip(*matrix.nonzero(), strict=True):
            axes.text(column, row, matrix[row, column], ha='center', va='center', fontsize='small',
                      color='white' if shares[row, column] > 0.3 else 'black')
    if listed:
        wrong = matrix * (1 - np.eye(count, dtype=matrix.dtype))
        most = np.argsort(-wrong, axis=None, kind='stable')[:NUM_CONFUSED]
        lines = [f'{names[true]} → {names[predicted]}: {wrong[true, predicted]}'
                 for true, predicted in zip(*np.unravel_index(most, wrong.shape), strict=True)
                 if wrong[true, predicted]]
        left = 1 - LIST_WIDTH / figure.get_figwidth()
        figure.text(left + 0.15 / figure.get_figwidth(), 0.5, '\n'.join(['most confused', '', *(lines or ['none'])]),
                    va='center', fontsize=7, linespacing=1.5)
        figure.set_layout_engine('constrained', rect=(0, 0, left, 1))
    return figure
