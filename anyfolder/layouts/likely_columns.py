"""Propose the most likely columns for files with a box in each line."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from anyfolder.readers.likely_boxes import CENTER, are_numeric, likely_box

from .columns import NOTHING

MAX_CLASSES = 1000


def likely_columns(
    rows: Sequence[Sequence[str]], sizes: Sequence[Sequence[int]]
) -> dict[str, Any] | None:
    """The keys ``columns`` and ``units`` of a layout; None if the lines seem to have no boxes.

    Args:
        rows: the values of each line.
        sizes: width and height in pixels of the image of each line.
    """
    if not rows:
        return None
    count = Counter(map(len, rows)).most_common(1)[0][0]
    alike = [(row, size) for row, size in zip(rows, sizes, strict=True) if len(row) == count]
    texts = np.array([row for row, _ in alike])
    found = likely_box(texts, [size for _, size in alike])
    if found is None:
        return None
    start, names = found
    numeric, columns = are_numeric(texts), [NOTHING] * count
    columns[start : start + 4] = names
    rest = [i for i in range(count) if columns[i] == NOTHING]
    if rest:
        columns[max(rest, key=lambda i: _likeness_of_class(texts[:, i], numeric[i]))] = 'class'
    units = dict(units=['relative', 'center']) if names == CENTER else {}
    return dict(columns=columns, **units)


def _likeness_of_class(texts: np.ndarray, is_number: bool) -> tuple[bool, bool, int]:
    """How likely a column has classes: names before whole numbers, which are common."""
    if not is_number:
        return True, True, 0
    values = texts.astype(float)
    counts = bool((values % 1 == 0).all() and values.min() >= 0 and values.max() < MAX_CLASSES)
    return False, counts, len({*values.tolist()})
