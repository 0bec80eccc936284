"""The pixels of polygons: those whose center is inside, as pycocotools counts them.

OpenCV and Pillow also fill the outline, which makes objects a pixel wider and higher.
"""

from collections.abc import Sequence

import numpy as np

MAX_CROSSINGS = 1 << 22  # crossings of edges and pixel rows computed at once


def draw_polygon(mask: np.ndarray, polygon: Sequence[float], value: int | bool) -> None:
    """Set the pixels inside a polygon to a value, by the even-odd rule.

    The line through the centers of a row crosses the outline at some points, and is inside from
    each odd crossing to the next.

    Args:
        mask: the pixels (H, W), which are changed. The center of the first one is at (0.5, 0.5).
        polygon: ``[x, y, x, y, ...]`` in pixels, may exceed the mask.
    """
    starts = np.reshape(np.asarray(polygon, float), (-1, 2))
    ends = np.roll(starts, -1, axis=0)
    height, width = mask.shape
    first = _first_center(np.minimum(starts[:, 1], ends[:, 1]), height)
    last = _first_center(np.maximum(starts[:, 1], ends[:, 1]), height)
    left = _first_center(starts[:, :1].min(), width)
    inner = mask[first.min() : last.max(), left : _first_center(starts[:, :1].max(), width)]
    if not inner.size:
        return
    # How many crossings lie directly before a pixel; the last column is beyond the mask.
    flips = np.zeros((inner.shape[0], inner.shape[1] + 1), np.uint8)
    for edges in np.array_split(np.arange(len(starts)), 1 + (last - first).sum() // MAX_CROSSINGS):
        rows, columns = _crossings(starts[edges], ends[edges], first[edges], last[edges])
        columns = _first_center(columns - left, inner.shape[1])
        np.add.at(flips.ravel(), (rows - first.min()) * flips.shape[1] + columns, 1)
    inside = np.bitwise_xor.accumulate(flips[:, :-1] & 1, axis=1)
    inner[inside.astype(bool)] = value


def _first_center(position: np.ndarray, end: int) -> np.ndarray:
    """The first pixel whose center is not before a position, clipped to 0 and ``end``."""
    return np.clip(np.ceil(position - 0.5), 0, end).astype(int)


def _crossings(
    starts: np.ndarray, ends: np.ndarray, first: np.ndarray, last: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The rows (K) and x positions (K) where edges cross the centers of rows.

    Args:
        starts, ends: the end points of the edges (N, 2).
        first, last: the rows (N) that each edge crosses, from the first one to before the last one.
    """
    counts = last - first
    edge = np.repeat(np.arange(len(counts)), counts)
    rows = np.arange(len(edge)) + np.repeat(first - counts.cumsum() + counts, counts)
    (x, y), (width, height) = starts[edge].T, (ends - starts)[edge].T
    return rows, x + (rows + 0.5 - y) * width / height
