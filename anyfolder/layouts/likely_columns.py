"""Propose the most likely columns for files with a box in each line."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from anyfolder.readers.likely_boxes import CENTER, are_numeric, likely_box

from .columns import NOTHING

MAX_CLASSES = 1000  # a column with a larger number is unlikely to have class numbers


def likely_columns(
    rows: Sequence[Sequence[str]], sizes: Sequence[Sequence[int]]
) -> dict[str, Any] | None:
    """The keys ``columns`` and ``units`` of a layout; None if the lines seem to have no boxes.

    Four numeric columns that give boxes within the images are the box. The class is the most likely
    of the other columns.

    Args:
        rows: the values of each line.
        sizes: width and height in pixels of the image of each line.
    """
    if not rows:
        return None
    count = Counter(map(len, rows)).most_common(1)[0][0]
    alike = [(row, size) for row, size in zip(rows, sizes, strict=True) if len(row) == count]
    texts = np.array([row for row, _ in alike])
    box = likely_box(texts, [size for _, size in alike])
    if box is None:
        return None
    start, names = box
    numeric, columns = are_numeric(texts), [NOTHING] * count
    columns[start : start + 4] = names
    unused = [i for i in range(count) if columns[i] == NOTHING]
    if unused:
        columns[max(unused, key=lambda i: _class_likelihood(texts[:, i], numeric[i]))] = 'class'
    units = dict(units=['relative', 'center']) if names == CENTER else {}
    return dict(columns=columns, **units)


def _class_likelihood(texts: np.ndarray, is_number: bool) -> tuple[bool, bool, int]:
    """How likely a column has classes, as a key to sort by.

    Names come first, then whole numbers below :data:`MAX_CLASSES`, then other numbers; among
    columns of numbers, the one with the most different values comes first.
    """
    if not is_number:
        return True, True, 0
    values = texts.astype(float)
    is_number_of_class = (values % 1 == 0).all() and 0 <= values.min() <= values.max() < MAX_CLASSES
    return False, bool(is_number_of_class), len({*values.tolist()})
