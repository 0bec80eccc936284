"""Polygons ``[x, y, x, y, ...]`` and run lengths of objects."""

import math
from collections.abc import Sequence

import numpy as np


def box_around(polygons: Sequence[Sequence[float]]) -> tuple[float, float, float, float]:
    """Left, top, width and height of polygons."""
    x = [value for polygon in polygons for value in polygon[::2]]
    y = [value for polygon in polygons for value in polygon[1::2]]
    return min(x), min(y), max(x) - min(x), max(y) - min(y)


def box_around_turned(box: Sequence[float], degrees: float) -> tuple[float, ...] | None:
    """The upright box around one that is turned by so many degrees; None if it is not turned."""
    if not math.isfinite(degrees) or degrees % 180 == 0:
        return None
    left, top, width, height = box
    cos, sin = (abs(wave(math.radians(degrees))) for wave in (math.cos, math.sin))
    sides = width * cos + height * sin, width * sin + height * cos
    return left + (width - sides[0]) / 2, top + (height - sides[1]) / 2, *sides


def box_of_mask(mask: np.ndarray) -> tuple[int, ...] | None:
    """Left, top, width and height of the pixels of a mask (H, W); None if there are none."""
    rows, columns = (np.flatnonzero(mask.any(axis=axis)).tolist() for axis in (1, 0))
    if not rows:
        return None
    left, top = columns[0], rows[0]
    return left, top, columns[-1] + 1 - left, rows[-1] + 1 - top


def polygon_area(polygon: Sequence[float]) -> float:
    """The area of a polygon ``[x, y, x, y, ...]``, by the shoelace formula."""
    points = list(zip(polygon[::2], polygon[1::2], strict=True))
    pairs = zip(points, [*points[1:], points[0]], strict=True)
    return abs(sum(x * next_y - next_x * y for (x, y), (next_x, next_y) in pairs)) / 2
