"""The confusion matrix of a classifier."""

from collections.abc import Sequence

import numpy as np
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure

from .style import new_figure

MAX_NUMBERED = 20  # with more classes, numbers are too small to read
MAX_NAMED = 60
MAX_CELLS = 250  # along one side, each of some pixels; with more classes, several share a cell
NUM_CONFUSED = 12
LIST_WIDTH = 3.2  # in inches
NAME_LENGTH = 22


def draw_confusion_matrix(matrix: np.ndarray, classes: Sequence[str] | None = None) -> Figure:
    """Draw which classes are taken for which. The colour is the share of the true class, in rows.

    Up to 20 classes have numbers, up to 60 have names. With more, the most frequent confusions are listed beside the
    matrix, and above 250 classes a cell shows the largest share of several classes.

    Args:
        matrix: counts of true (rows) and predicted (columns) classes, of shape (classes, classes).
        classes: names of the classes.
    """
    count = len(matrix)
    names = [shortened(str(name)) for name in (classes or range(count))]
    side = float(np.clip(2 + 0.45 * count, 3, 8)) if count <= MAX_NAMED else 6.5
    listed = count > MAX_NUMBERED
    figure = new_figure(side + 1 + LIST_WIDTH * listed, side)
    axes = figure.add_subplot()
    shares = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    group = -(-count // MAX_CELLS)
    # Rare confusions are seen too: the colour follows the root of the share.
    cells = largest_of(shares, group)
    end = len(cells) * group - 0.5
    picture = axes.imshow(cells, cmap='Blues', norm=PowerNorm(0.5, 0, 1), interpolation='nearest',
                          extent=(-0.5, end, end, -0.5))
    figure.colorbar(picture, ax=axes, label='share of the true class' + (
        f', largest of {group} x {group} classes' if group > 1 else ''), shrink=0.8, pad=0.02,
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
        lines = [f'{names[true]} → {names[predicted]}: {number}'
                 for true, predicted, number in most_confused(matrix, NUM_CONFUSED)]
        left = 1 - LIST_WIDTH / figure.get_figwidth()
        figure.text(left + 0.15 / figure.get_figwidth(), 0.5, '\n'.join(['most confused', '', *(lines or ['none'])]),
                    va='center', fontsize=7, linespacing=1.5)
        figure.set_layout_engine('constrained', rect=(0, 0, left, 1))
    return figure


def shortened(name: str) -> str:
    """A name of at most 22 characters."""
    return name if len(name) <= NAME_LENGTH else f'{name[:NAME_LENGTH - 1]}…'


def largest_of(shares: np.ndarray, group: int) -> np.ndarray:
    """The largest of every ``group`` x ``group`` entries of a square matrix."""
    padded = np.pad(shares, (0, -len(shares) % group))
    return padded.reshape(len(padded) // group, group, -1, group).max(axis=(1, 3))


def most_confused(matrix: np.ndarray, most: int) -> list[tuple[int, int, int]]:
    """The pairs (true, predicted, count) of different classes with the largest counts, in that order."""
    wrong = matrix * (1 - np.eye(len(matrix), dtype=matrix.dtype))
    order = np.argsort(-wrong, axis=None, kind='stable')[:most]
    pairs = zip(*np.unravel_index(order, wrong.shape), strict=True)
    return [(int(true), int(predicted), int(wrong[true, predicted])) for true, predicted in pairs
            if wrong[true, predicted]]
