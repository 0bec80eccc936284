"""Tell label maps from photographs by their pixels, and compare maps with each other.

A map is an image file with a value for each pixel of another image, such as a mask of classes. Its
regions are the pixels of each value.
"""

from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import cv2
import numpy as np

from anyfolder.sampling import evenly_spaced

from .mask_values import lossy_kind, values_of

GRID_SIDE = 64  # side in pixels to which maps are subsampled for comparisons
MAX_MAP_VALUES = 64  # distinct values in a label map; photographs have thousands
MIN_FLAT_SHARE = 0.8  # fraction of a label map's pixels that equal their right neighbor
MIN_MAIN_SHARE = 0.9  # fraction of a lossy binary map's pixels with its two main values
COMPARED_MAPS = 8  # maximum number of maps sampled from a folder
MIN_IOU = 0.85  # IoU of regions in maps that nearly coincide
MIN_REGION_SHARE = 0.005  # fraction of pixels; smaller regions are not compared


def is_label_map(path: Path) -> bool:
    """True if a file has few values in flat regions, unlike a photograph.

    A lossy binary map has more values, but nearly all pixels have two of them.
    """
    values = _values(path)
    if values is None or values.shape[1] < 2:
        return False
    rows = values[evenly_spaced(len(values), 4 * GRID_SIDE)]  # enough, and faster than all
    flat_share = (rows[:, 1:] == rows[:, :-1]).mean()
    distinct, counts = np.unique(rows, return_counts=True)
    if len(distinct) <= MAX_MAP_VALUES:
        return bool(flat_share >= MIN_FLAT_SHARE)
    main_share = np.sort(counts)[-2:].sum() / counts.sum()
    return bool(lossy_kind(path)) and bool(main_share >= MIN_MAIN_SHARE)


def are_nearly_the_same(maps: Sequence[Path]) -> bool:
    """True if the regions of all maps nearly coincide, like those of a camera's field of view."""
    grids = [grid for grid in map(_grid, _sample(maps)) if grid is not None]
    ious = [_min_iou(first, second) for first, second in pairwise(grids)]
    return bool(ious) and float(np.median(ious)) >= MIN_IOU


def have_same_regions(maps: Sequence[Path], others: Sequence[Path]) -> bool:
    """True if maps have the same regions as others, and their values correspond one to one.

    Args:
        maps, others: two maps of each image.
    """
    pairs: set[tuple[int, int]] = set()
    for map_, other in zip(_sample(maps), _sample(others), strict=True):
        grid, other_grid = _grid(map_), _grid(other)
        if grid is None or other_grid is None:
            return False
        pairs |= {*zip(grid.ravel().tolist(), other_grid.ravel().tolist(), strict=True)}
    return len({value for value, _ in pairs}) == len({value for _, value in pairs}) == len(pairs)


def _sample(maps: Sequence[Path]) -> list[Path]:
    return [maps[i] for i in evenly_spaced(len(maps), COMPARED_MAPS)]


def _values(path: Path) -> np.ndarray | None:
    """The values (H, W) of a map; None for a file that cannot be a map."""
    with suppress(Exception):  # any decoder error
        return values_of(path)
    return None


def _grid(path: Path) -> np.ndarray | None:
    """The values of a map, subsampled to :data:`GRID_SIDE` in both directions."""
    values = _values(path)
    if values is None:
        return None
    return cv2.resize(values, (GRID_SIDE, GRID_SIDE), interpolation=cv2.INTER_NEAREST)


def _min_iou(first: np.ndarray, second: np.ndarray) -> float:
    """The smallest IoU of two maps' regions of a value, over the values with a large region.

    It is 0 if no region is large, as in photographs.
    """
    values, counts = np.unique(first, return_counts=True)
    large = values[counts >= MIN_REGION_SHARE * first.size]
    return min(
        (
            ((first == value) & (second == value)).sum()
            / ((first == value) | (second == value)).sum()
            for value in large.tolist()
        ),
        default=0.0,
    )
