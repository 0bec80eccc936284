"""Boxes and polygons: the common forms of boxes, and arithmetic.

A box in pixels is ``(left, top, width, height)``, a polygon ``[x, y, x, y, ...]``.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

Box = tuple[float, float, float, float]


class BoxForm(NamedTuple):
    """The meaning of the four numbers of a box.

    Attributes:
        words: the numbers in order, for messages.
        as_xywh: returns left, top, width and height for the four numbers, which can be arrays.
    """

    words: str
    as_xywh: Callable[[Any, Any, Any, Any], tuple[Any, Any, Any, Any]]


BOX_FORMS = dict(
    xywh=BoxForm('left, top, width, height', lambda x, y, w, h: (x, y, w, h)),
    xyxy=BoxForm(
        'left, top, right, bottom', lambda x, y, right, bottom: (x, y, right - x, bottom - y)
    ),
    center=BoxForm(
        'center x, center y, width, height', lambda x, y, w, h: (x - w / 2, y - h / 2, w, h)
    ),
    yxyx=BoxForm(
        'top, left, bottom, right', lambda y, x, bottom, right: (x, y, right - x, bottom - y)
    ),
    xxyy=BoxForm(
        'left, right, top, bottom', lambda x, right, y, bottom: (x, y, right - x, bottom - y)
    ),
)


def scaled(values: Sequence[float], size: Sequence[float]) -> list[float]:
    """Fractions of the width and height, x and y in turns -> pixels of an image of this size."""
    return [value * size[i % 2] for i, value in enumerate(values)]


def box_around(polygons: Sequence[Sequence[float]]) -> Box:
    """The box around polygons.

    Raises:
        ValueError: if they have no point.
    """
    x = [value for polygon in polygons for value in polygon[::2]]
    y = [value for polygon in polygons for value in polygon[1::2]]
    return min(x), min(y), max(x) - min(x), max(y) - min(y)


def upright_box(box: Sequence[float], degrees: float) -> Box | None:
    """The upright box around a box that is rotated around its center; None without a rotation."""
    if not math.isfinite(degrees) or degrees % 180 == 0:
        return None
    left, top, width, height = box
    angle = math.radians(degrees)
    cos, sin = abs(math.cos(angle)), abs(math.sin(angle))
    new_width, new_height = width * cos + height * sin, width * sin + height * cos
    return left + (width - new_width) / 2, top + (height - new_height) / 2, new_width, new_height


def box_of_mask(mask: np.ndarray) -> tuple[int, ...] | None:
    """The box of the pixels of a mask (H, W); None if there are none."""
    rows, columns = (np.flatnonzero(mask.any(axis=axis)).tolist() for axis in (1, 0))
    if not rows:
        return None
    left, top = columns[0], rows[0]
    return left, top, columns[-1] + 1 - left, rows[-1] + 1 - top


def clipped(box: Sequence[float], size: Sequence[float]) -> Box:
    """The part of a box within an image of this size; a side is negative if there is none."""
    left, top, width, height = box
    right, bottom = min(left + width, size[0]), min(top + height, size[1])
    left, top = max(left, 0.0), max(top, 0.0)
    return left, top, right - left, bottom - top


def clip_points(polygon: Sequence[float], size: Sequence[float]) -> list[float]:
    """The points of a polygon, each moved to the nearest one in an image of this size."""
    return [min(max(value, 0.0), size[i % 2]) for i, value in enumerate(polygon)]


def polygon_area(polygon: Sequence[float]) -> float:
    """The area of a polygon in pixels, by the shoelace formula."""
    points = list(zip(polygon[::2], polygon[1::2], strict=True))
    pairs = zip(points, [*points[1:], points[0]], strict=True)
    return abs(sum(x * next_y - next_x * y for (x, y), (next_x, next_y) in pairs)) / 2


def circle(
    center: Sequence[float], radii: Sequence[float], corners: int = 32, radians: float = 0.0
) -> list[float]:
    """The polygon of a circle or an ellipse, with this many corners.

    Args:
        center: x and y.
        radii: half of the width and of the height before the rotation.
        corners: the number of corners.
        radians: the clockwise rotation around the center.
    """
    (x, y), (radius_x, radius_y) = center, radii
    cos, sin = math.cos(radians), math.sin(radians)
    polygon = []
    for i in range(corners):
        angle = 2 * math.pi * i / corners
        right, down = radius_x * math.cos(angle), radius_y * math.sin(angle)
        polygon += [x + right * cos - down * sin, y + right * sin + down * cos]
    return polygon


def rounded(box: Sequence[float]) -> str:
    """A box with two decimals, for messages."""
    return str([round(float(value), 2) for value in box])
