"""The confusion matrix of a classifier."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

MAX_NUMBERED = 30  # with more classes, names and numbers are too small to read


def draw_confusion_matrix(matrix: np.ndarray, classes: Sequence[str] | None = None) -> Figure:
    """Draw counts of true (rows) and predicted (columns) classes. The colour is the share of the row.

    Args:
        matrix: counts of shape (classes, classes).
        classes: names of the classes.
    """
    count = len(matrix)
    side = min(2.5 + 0.5 * count, 10)
    figure = Figure(figsize=(side, side), dpi=120, layout='constrained')
    axes = figure.add_subplot()
    shares = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    axes.imshow(shares, cmap='Blues', vmin=0, vmax=1)
    accuracy = 100 * np.trace(matrix) / max(matrix.sum(), 1)
    axes.set(xlabel='predicted', ylabel='true', title=f'{accuracy:.2f} % of {matrix.sum()} right')
    if count <= MAX_NUMBERED:
        axes.set_xticks(range(count), classes or range(count), rotation=90 if classes else 0)
        axes.set_yticks(range(count), classes or range(count))
        for row, column in zip(*matrix.nonzero(), strict=True):
            axes.text(column, row, matrix[row, column], ha='center', va='center', fontsize='small',
                      color='white' if shares[row, column] > 0.5 else 'black')
    return figure
