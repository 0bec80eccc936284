"""Cut large images into overlapping square tiles, and assign objects to the tiles.

Detectors train and test on tiles if objects are too small in the whole image.
"""

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
        image: the index of the image.
        area: the part of the image that the view shows.
        objects: the indices of the image's N objects that are at least partly in the view.
        boxes: left, top, right and bottom (N, 4) of their visible parts, in pixels from the view's
            top left corner.
        ignored: whether each object is ignored, as neither object nor background (N,).
    """

    image: int
    area: Area
    objects: np.ndarray
    boxes: np.ndarray
    ignored: np.ndarray


def cut_tiles(width: int, height: int, side: int) -> list[Area]:
    """The tiles of an image, row by row. The last tiles of rows and columns end at its border.

    Args:
        width, height: the size of the image in pixels.
        side: the side of a tile in pixels. Tiles of smaller images are as small as these.
    """

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
    """Choose the views to train on: tiles, and whole images that have several tiles.

    Chosen is every view with an object that is not ignored, and at most the same number of other
    views, evenly spaced. Objects with less than 70 % of their box in a tile are ignored there, as
    are objects below 8 pixels in a whole image that is reduced to the size of a tile.

    Args:
        images: for each image its width and height, the left, top, right and bottom of its boxes,
            and for each box whether it is always ignored (COCO's ``iscrowd``).
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
            cropped = corners.clip((left, top, left, top), (right, bottom, right, bottom))
            cropped = cropped - (left, top, left, top)
            cropped_areas = np.prod(cropped[:, 2:] - cropped[:, :2], axis=1)
            (objects,) = cropped_areas.nonzero()
            is_cut_off = cropped_areas[objects] < MIN_VISIBLE_SHARE * areas[objects]
            ignored_here = ignored[objects] | is_cut_off
            views.append(View(number, area, objects, cropped[objects], ignored_here))
        if len(tiles) > 1:
            scale = side / max(width, height)
            is_tiny = scale * np.sqrt(areas) < VISIBLE_PIXELS
            objects = np.arange(len(corners))
            views.append(View(number, (0, 0, width, height), objects, corners, ignored | is_tiny))
    # Views without an object that counts: `all` of no objects is True.
    empty = [i for i, view in enumerate(views) if view.ignored.all()]
    count = min(len(empty), len(views) - len(empty))
    chosen = np.linspace(0, len(empty) - 1, count).round().astype(int)
    dropped = {*empty} - {empty[i] for i in chosen}
    return [view for i, view in enumerate(views) if i not in dropped]
