"""Tell label maps from photographs by their pixels, and compare maps with each other."""

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
MIN_OVERLAP = 0.85  # IoU of regions in maps that nearly coincide
MIN_REGION_SHARE = 0.005  # fraction of pixels; smaller regions are not compared


def is_label_map(path: Path) -> bool:
    """True if a file has few values in flat regions, unlike a photograph."""
    values = _values(path)
    if values is None or values.shape[1] < 2:
        return False
    rows = values[evenly_spaced(len(values), 4 * GRID_SIDE)]
    flat = (rows[:, 1:] == rows[:, :-1]).mean()
    found, counts = np.unique(rows, return_counts=True)
    if len(found) <= MAX_MAP_VALUES:
        return bool(flat >= MIN_FLAT_SHARE)
    main = np.sort(counts)[-2:].sum() / counts.sum()
    return bool(lossy_kind(path)) and bool(main >= MIN_MAIN_SHARE)


def are_nearly_the_same(maps: Sequence[Path]) -> bool:
    """True if the regions of all maps nearly coincide, like those of a camera's field of view."""
    grids = [grid for grid in map(_grid, _sample(maps)) if grid is not None]
    overlaps = [_overlap(one, other) for one, other in pairwise(grids)]
    return bool(overlaps) and float(np.median(overlaps)) >= MIN_OVERLAP


def have_same_regions(maps: Sequence[Path], others: Sequence[Path]) -> bool:
    """True if maps have the same regions as others, with one value for each of their values.

    Args:
        maps, others: two maps of each image.
    """
    pairs: set[tuple[int, int]] = set()
    for map_, other in zip(_sample(maps), _sample(others), strict=True):
        own, known = _grid(map_), _grid(other)
        if own is None or known is None:
            return False
        pairs |= {*zip(own.ravel().tolist(), known.ravel().tolist(), strict=True)}
    return all(len({pair[i] for pair in pairs}) == len(pairs) for i in (0, 1))


def _sample(maps: Sequence[Path]) -> list[Path]:
    return [maps[i] for i in evenly_spaced(len(maps), COMPARED_MAPS)]


def _values(path: Path) -> np.ndarray | None:
    """The values (H, W) of a map; None for a file that cannot be a map."""
    with suppress(Exception):  # any decoder error
        return values_of(path)
    return None


def _grid(path: Path) -> np.ndarray | None:
    values = _values(path)
    if values is None:
        return None
    return cv2.resize(values, (GRID_SIDE, GRID_SIDE), interpolation=cv2.INTER_NEAREST)


def _overlap(one: np.ndarray, other: np.ndarray) -> float:
    """The smallest IoU of the region of any value."""
    values, counts = np.unique(one, return_counts=True)
    large = values[counts >= MIN_REGION_SHARE * one.size]
    return min(
        ((one == value) & (other == value)).sum() / ((one == value) | (other == value)).sum()
        for value in large.tolist()
    )
