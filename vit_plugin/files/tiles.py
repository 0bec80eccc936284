"""Overlapping squares of large images, and the objects in them. Without torch."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

OVERLAP = 0.2  # share of a tile that each neighbor overlaps
# An object counts in a tile that holds at least this share of its box, as in DOTA's tools.
MIN_VISIBLE_SHARE = 0.7
# Side in pixels of a square with the area of the smallest object that is visible in the whole
# image.
VISIBLE_PIXELS = 8

Area = tuple[int, int, int, int]  # left, top, right and bottom in pixels of the image


class View(NamedTuple):
    """One input of the model: a tile of an image, or the whole image.

    Attributes:
        image: the number of the image.
        area: its position in the image.
        objects: the numbers of the objects that are at least partly in it.
        boxes: left, top, right and bottom (N, 4) of their visible parts, in pixels from its corner.
        ignored: whether each is ignored, as neither object nor background (N,).
    """

    image: int
    area: Area
    objects: np.ndarray
    boxes: np.ndarray
    ignored: np.ndarray


def cut_tiles(width: int, height: int, side: int) -> list[Area]:
    """The tiles of an image, row by row. The last ones end where the image does."""

    def starts(length: int) -> list[int]:
        last = max(length - side, 0)
        return [*range(0, last, side - round(OVERLAP * side)), last]

    return [
        (left, top, min(left + side, width), min(top + side, height))
        for top in starts(height)
        for left in starts(width)
    ]


def choose_views(
    images: Iterable[tuple[tuple[int, int], ArrayLike, Sequence[bool]]], side: int
) -> list[View]:
    """Every tile with an object, as many without, evenly spaced, and images with several tiles.

    Objects with less than 70 % of their box in a tile are ignored there, as are objects below 8
    pixels in a whole image that is reduced to the size of a tile.

    Args:
        images: for each image its width and height, the left, top, right and bottom of its boxes,
            and whether they are always ignored.
        side: side of a tile, in pixels of the image.
    """
    views: list[View] = []
    for number, ((width, height), boxes, crowd) in enumerate(images):
        corners = np.array(boxes, float).reshape(-1, 4)
        ignored = np.array(crowd, bool)
        areas = np.prod(corners[:, 2:] - corners[:, :2], axis=1)
        tiles = cut_tiles(width, height, side)
        for area in tiles:
            left, top, right, bottom = area
            cut = corners.clip((left, top) * 2, (right, bottom) * 2) - (left, top) * 2
            inside = np.prod(cut[:, 2:] - cut[:, :2], axis=1)
            (there,) = inside.nonzero()
            less = inside[there] < MIN_VISIBLE_SHARE * areas[there]
            views.append(View(number, area, there, cut[there], ignored[there] | less))
        if len(tiles) > 1:
            scale = side / max(width, height)
            unseen = scale * np.sqrt(areas) < VISIBLE_PIXELS
            everything = np.arange(len(corners))
            views.append(View(number, (0, 0, width, height), everything, corners, ignored | unseen))
    empty = [i for i, view in enumerate(views) if view.ignored.all()]
    number = min(len(empty), len(views) - len(empty))
    chosen = np.linspace(0, len(empty) - 1, number).round().astype(int)
    left_out = {*empty} - {empty[i] for i in chosen}
    return [view for i, view in enumerate(views) if i not in left_out]
