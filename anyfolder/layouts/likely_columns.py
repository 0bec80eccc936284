"""What the columns of lines with boxes most likely are, to be proposed and not to be relied on."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from .columns import NUMBER

GAP = re.compile(r'[,;\s]+')  # between values
MAINLY = 0.95  # of the lines
MAX_CLASSES = 1000
ROUNDED = 2.0  # pixels by which a box may exceed its image
Names = tuple[str, str, str, str]
EDGES: tuple[Names, Names] = ('left', 'top', 'right', 'bottom'), ('left', 'top', 'width', 'height')
CENTER = ('x', 'y', 'width', 'height')


def likely_columns(lines: Sequence[tuple[str, Sequence[int]]]) -> dict[str, Any] | None:
    """The keys ``columns`` and ``units`` of a layout of lines; None if they seem to have no boxes.

    Four numbers in a row are a box if they lie in their images. Of several such rows the one with
    the largest boxes counts.

    Args:
        lines: each with the width and height of its image in pixels.
    """
    split = [(GAP.split(line.strip(' ,;')), size) for line, size in lines]
    count = Counter(len(values) for values, _ in split).most_common(1)[0][0]
    rows = [(values, size) for values, size in split if len(values) == count]
    texts = np.array([values for values, _ in rows])
    sizes = np.array([size for _, size in rows], float)
    numeric = [all(map(NUMBER.fullmatch, column)) for column in texts.T]
    found = []
    for start in range(count - 3):
        if all(numeric[start : start + 4]):
            numbers = texts[:, start : start + 4].astype(float)
            found += [(area, start, names) for names, area in _boxes(numbers, sizes)]
    if not found:
        return None
    _, start, names = max(found)
    columns = ['_'] * count
    columns[start : start + 4] = names
    rest = [i for i in range(count) if columns[i] == '_']
    if rest:
        columns[max(rest, key=lambda i: _likeness_of_class(texts[:, i], numeric[i]))] = 'class'
    units = dict(units=['relative', 'center']) if names == CENTER else {}
    return dict(columns=columns, **units)


def _boxes(numbers: np.ndarray, sizes: np.ndarray) -> list[tuple[Names, float]]:
    """What four numbers (N, 4) may be in images of these sizes (N, 2), with the mean area."""
    first, second = numbers[:, :2], numbers[:, 2:]
    if (numbers <= 1).all() and (second > 0).all():
        return [(CENTER, 1.0)]
    found: list[tuple[Names, float]] = []
    corners = (second > first).all()  # rarely true of sizes
    for names, sides in ((EDGES[0], second - first), (EDGES[1], second)):
        within = (first >= -ROUNDED) & (sides > 0) & (first + sides <= sizes + ROUNDED)
        if within.all(axis=1).mean() >= MAINLY and (names == EDGES[0]) == corners:
            found.append((names, float((sides.prod(axis=1) / sizes.prod(axis=1)).mean())))
    return found


def _likeness_of_class(texts: np.ndarray, is_number: bool) -> tuple[bool, bool, int]:
    """How much a column is one of classes: names before whole numbers, of which there are many."""
    if not is_number:
        return True, True, 0
    values = texts.astype(float)
    counts = bool((values % 1 == 0).all() and values.min() >= 0 and values.max() < MAX_CLASSES)
    return False, counts, len({*values.tolist()})
