"""Check masks of objects, as polygons or run lengths, against their boxes."""

import math
from collections.abc import Sequence

import numpy as np

from anyfolder.errors import first_line

from .box_meaning import MIN_SIDE, ROUNDED
from .findings import Findings
from .geometry import box_around, moved_within, rounded
from .records import Instance
from .run_lengths import box_of_runs

APART = 0.5  # fraction of a side by which a box may differ from its polygons
CORRECT = 'correct them'


def is_mask(found: Instance, size: tuple[int, int], findings: Findings) -> bool:
    """True if the mask of an object fits its box; otherwise it is rejected.

    Args:
        found: an object in pixels. Its polygons or run lengths are normalized.
        size: width and height of its image in pixels.
        findings: collects errors.
    """
    if isinstance(found.segmentation, dict):
        return _are_run_lengths(found, size, findings)
    parts = found.segmentation or []
    polygons = [part for part in parts if len(part) >= 6]
    if not polygons or any(
        len(part) % 2 or not all(map(math.isfinite, part)) for part in (polygons or parts)
    ):
        what = 'polygons are not three or more pairs of finite numbers'
        findings.reject(what, CORRECT, found.origin, tolerated=True)
        return False
    if len(polygons) < len(parts):
        findings.warn('parts of polygons left out, with fewer than three points', found.origin)
    found.segmentation = polygons
    around = box_around([moved_within(polygon, size) for polygon in polygons])
    return _is_in_its_box(around, found, findings)


def _is_in_its_box(around: Sequence[float], found: Instance, findings: Findings) -> bool:
    """True if polygons or run lengths, with this box around them, are at the place of their box."""
    apart = np.abs(np.subtract(around, found.box))
    if (apart > APART * np.tile(found.box[2:], 2) + MIN_SIDE).any():
        what = 'polygons and boxes of objects are in different places'
        where = f'{rounded(around)} and {rounded(found.box)} of {found.origin}'
        findings.reject(what, 'make one of the other', where, tolerated=True)
        return False
    return True


def _are_run_lengths(found: Instance, size: tuple[int, int], findings: Findings) -> bool:
    """True if COCO's run lengths, as numbers or compressed, fit an image of this size."""
    assert isinstance(found.segmentation, dict)
    shape, counts = list(size[::-1]), found.segmentation.get('counts')
    if list(found.segmentation.get('size', ())) != shape:
        what = 'run-length masks have another size than their image'
        findings.reject(what, CORRECT, found.origin)
        return False
    try:
        around = box_of_runs(counts, size)
    except (ValueError, TypeError, IndexError, OverflowError) as error:
        what = 'masks are not valid COCO run lengths'
        findings.reject(what, CORRECT, f'{found.origin} ({first_line(error)})')
        return False
    if around is None:
        findings.reject('run-length masks are empty', CORRECT, found.origin, tolerated=True)
        return False
    left, top, width, height = around
    apart, by_rows = (
        np.abs(np.subtract(one, found.box)).sum() for one in (around, (top, left, height, width))
    )
    if shape[0] == shape[1] and by_rows + ROUNDED < apart:
        what = 'run-length masks only fit their boxes if read by rows'
        findings.reject(what, 'write them by columns, as in COCO', found.origin, tolerated=True)
        return False
    found.segmentation = dict(size=shape, counts=counts)
    return _is_in_its_box(around, found, findings)
