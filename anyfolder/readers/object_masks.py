"""Check masks of objects, as polygons or run lengths, against their boxes."""

import math
from collections.abc import Sequence

import numpy as np

from anyfolder.errors import first_line

from .box_meaning import MAX_EXCESS, MIN_SIDE
from .findings import Findings
from .geometry import box_around, clip_points, rounded
from .records import Instance
from .run_lengths import box_of_runs

MAX_APART = 0.5  # fraction of a box's side by which an edge may be off that of its polygons
CORRECT = 'correct them'


def check_mask(instance: Instance, size: tuple[int, int], findings: Findings) -> bool:
    """True if the mask of an object is valid and fits its box; otherwise it is rejected.

    Args:
        instance: an object in pixels. Parts of fewer than three points are removed from its
            polygons, and other keys from its run lengths.
        size: width and height of its image in pixels.
        findings: collects errors.
    """
    if isinstance(instance.segmentation, dict):
        return _has_valid_runs(instance, size, findings)
    parts = instance.segmentation if isinstance(instance.segmentation, list) else []
    polygons = [part for part in parts if len(part) >= 6]
    if not polygons or any(
        len(part) % 2 or not all(map(math.isfinite, part)) for part in (polygons or parts)
    ):
        what = 'polygons are not three or more pairs of finite numbers'
        findings.reject(what, CORRECT, instance.origin, few_are_tolerated=True)
        return False
    if len(polygons) < len(parts):
        findings.warn('parts of polygons left out, with fewer than three points', instance.origin)
    instance.segmentation = polygons
    around = box_around([clip_points(polygon, size) for polygon in polygons])
    return _fits_box(around, instance, findings)


def _fits_box(around: Sequence[float], instance: Instance, findings: Findings) -> bool:
    """True if polygons or run lengths are at the place of their box; otherwise they are rejected.

    Args:
        around: the box around the polygons or run lengths.
        instance: the object with its box.
        findings: collects the error.
    """
    apart = np.abs(np.subtract(around, instance.box))
    if (apart > MAX_APART * np.tile(instance.box[2:], 2) + MIN_SIDE).any():
        what = 'polygons and boxes of objects are in different places'
        where = f'{rounded(around)} and {rounded(instance.box)} of {instance.origin}'
        findings.reject(what, 'make one of the other', where, few_are_tolerated=True)
        return False
    return True


def box_of_valid_runs(
    instance: Instance, size: tuple[int, int], findings: Findings
) -> tuple[int, ...] | None:
    """The box around COCO's run lengths, as numbers or compressed; None if they are rejected."""
    assert isinstance(instance.segmentation, dict)
    shape, counts = list(size[::-1]), instance.segmentation.get('counts')
    stated = instance.segmentation.get('size')
    if not isinstance(stated, (list, tuple)) or [*stated] != shape:
        what = 'run-length masks have another size than their image'
        findings.reject(what, CORRECT, instance.origin)
        return None
    try:
        around = box_of_runs(counts, size)
    except (ValueError, TypeError, IndexError, OverflowError) as error:
        what = 'masks are not valid COCO run lengths'
        findings.reject(what, CORRECT, f'{instance.origin} ({first_line(error)})')
        return None
    if around is None:
        findings.reject(
            'run-length masks are empty', CORRECT, instance.origin, few_are_tolerated=True
        )
    return around


def _has_valid_runs(instance: Instance, size: tuple[int, int], findings: Findings) -> bool:
    """True if run lengths are valid and fit the box."""
    assert isinstance(instance.segmentation, dict)
    around = box_of_valid_runs(instance, size, findings)
    if around is None:
        return False
    shape = list(size[::-1])
    left, top, width, height = around
    apart = np.abs(np.subtract(around, instance.box)).sum()
    apart_by_rows = np.abs(np.subtract((top, left, height, width), instance.box)).sum()
    # For an image that is not square, the size already shows the order.
    if shape[0] == shape[1] and apart_by_rows + MAX_EXCESS < apart:
        what = 'run-length masks only fit their boxes if read by rows'
        findings.reject(
            what, 'write them by columns, as in COCO', instance.origin, few_are_tolerated=True
        )
        return False
    instance.segmentation = dict(size=shape, counts=instance.segmentation['counts'])
    return _fits_box(around, instance, findings)
