"""Outlines ``[x, y, x, y, ...]`` and run lengths of objects."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from vit_plugin.errors import needed_by


def box_around(polygons: Sequence[Sequence[float]]) -> tuple[float, float, float, float]:
    """Left, top, width and height of outlines."""
    x = [value for polygon in polygons for value in polygon[::2]]
    y = [value for polygon in polygons for value in polygon[1::2]]
    return min(x), min(y), max(x) - min(x), max(y) - min(y)


def polygon_area(polygon: Sequence[float]) -> float:
    """The area of an outline ``[x, y, x, y, ...]``, by the shoelace formula."""
    points = list(zip(polygon[::2], polygon[1::2], strict=True))
    pairs = zip(points, [*points[1:], points[0]], strict=True)
    return abs(sum(x * next_y - next_x * y for (x, y), (next_x, next_y) in pairs)) / 2


def mask_of(counts: Any, size: tuple[int, int]) -> np.ndarray:
    """The mask (H, W), bool, of COCO's run lengths for an image of this width and height.

    Raises:
        MissingExtraError: if supervision is not installed.
        ValueError: if they are not as many pixels.
    """
    with needed_by('A mask by run lengths'):
        from supervision import rle_to_mask
    return rle_to_mask(counts, size)
