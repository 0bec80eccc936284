"""Objects in images, compared with the pixels."""

import math
from collections.abc import Iterable, Sequence
from operator import sub

import numpy as np

from anyfolder.errors import InputError, first_line

from .findings import Findings
from .polygons import (
    box_around,
    box_around_turned,
    polygon_area,
)
from .records import ImageRecord, Instance, Records, number_of
from .run_lengths import box_of_runs

LEAST = 1.0  # pixels of a side; MMDetection leaves out smaller boxes without a word
ROUNDED = 2.0  # pixels by which a box may exceed its image by rounding
CORRECT = 'correct them'
APART = 0.5  # of its sides, by which a box may differ from that around its polygons


def with_right_size(records: Records, findings: Findings) -> Records:
    """The images whose annotated size matches the file or is missing. Others are rejected."""
    kept = []
    for record in records:
        width, height = record.stated
        apart = max(abs(width - record.size[0]), abs(height - record.size[1]))
        if not width or apart <= 1:
            if width and apart:
                findings.warn(
                    'sizes a pixel off in the annotation, taken from the files', record.origin
                )
            kept.append(record)
            continue
        what = 'images have another size than their annotation says'
        remedy = 'make the sizes and boxes those of the files'
        if (height, width) == record.size:
            what = 'images have the sides that their annotation says the other way round'
            remedy = (
                'save the images upright, as `mogrify -auto-orient` does, or turn the annotation'
            )
        findings.reject(
            what,
            remedy,
            f'{record.path} with {record.size[0]} x {record.size[1]} pixels, and '
            f'{width:g} x {height:g} in {record.origin}',
        )
    return kept


def check_instances(records: Records, findings: Findings, with_masks: bool = False) -> None:
    """Compare boxes with their images: clip and note what is outside, reject what cannot be right.

    Afterward every box has finite sides of at least a pixel within its image, and an area.

    Args:
        records: images whose size is known.
        findings: what is noticed.
        with_masks: whether polygons are needed, so that they are checked, too. They are dropped
            otherwise.

    Raises:
        InputError: if all boxes are of other units, see :func:`check_units`.
    """
    for record in records:
        record.instances = [found for found in record.instances if _is_finite(found, findings)]
        for found in record.instances:
            found.segmentation = (found.segmentation or None) if with_masks else None
            turned = box_around_turned(found.box, number_of(found.degrees))
            if turned:
                what = 'boxes with a rotation, taken as the upright rectangle around them'
                findings.warn(what, f'{found.degrees} degrees of {found.origin}')
                found.box = turned
    check_units(records)
    for record in records:
        record.instances = [found for found in record.instances if _fits(found, record, findings)]
        record.instances, repeated = without_repeats(record.instances)
        findings.warn_all(
            'objects left out, since the same box of the class is there',
            (found.origin for found in repeated),
        )
        findings.warn_all(
            'objects marked as crowd, ignored or difficult, neither trained on nor counted',
            (found.origin for found in record.instances if found.crowd),
        )


def without_repeats(instances: Iterable[Instance]) -> tuple[list[Instance], list[Instance]]:
    """The first instance of each class and box, and all others."""
    first: dict[tuple, Instance] = {}
    repeated = [
        found
        for found in instances
        if first.setdefault((found.name, *found.box), found) is not found
    ]
    return list(first.values()), repeated


def _is_finite(found: Instance, findings: Findings) -> bool:
    box = [number_of(value) for value in found.box]
    if len(box) != 4 or not all(map(math.isfinite, box)):
        findings.reject(
            'boxes are not 4 finite numbers',
            CORRECT,
            f'{list(found.box)!r} of {found.origin}',
            tolerated=True,
        )
        return False
    found.box = tuple(box)
    return True


def check_units(records: Records) -> None:
    """Raise a ``InputError`` if all boxes are relative to the image, or corners, not sizes."""
    boxes = [(found.box, record) for record in records for found in record.instances]
    if not boxes:
        return
    first = f'the first is {_short(boxes[0][0])} in {str(boxes[0][1].path)!r}'
    if all(max(box) <= 1 < max(record.size) for box, record in boxes):
        raise InputError(
            f'--data: all boxes have values from 0 to 1, {first}; multiply them by the width and '
            'height of their image.'
        )
    as_corners = all(
        left < right <= record.size[0] + ROUNDED and top < bottom <= record.size[1] + ROUNDED
        for (left, top, right, bottom), record in boxes
    )
    too_far = [
        left + width > record.size[0] + ROUNDED or top + height > record.size[1] + ROUNDED
        for (left, top, width, height), record in boxes
    ]
    if as_corners and sum(too_far) > len(boxes) / 10:
        raise InputError(
            '--data: the boxes seem to be left, top, right, bottom in place of left, top, width, '
            f'height, {first}; subtract left from right and top from bottom.'
        )


def _fits(found: Instance, record: ImageRecord, findings: Findings) -> bool:
    """Cut a box at the edges of its image; whether enough of it is left."""
    left, top, width, height = found.box
    where = f'{_short(found.box)} of {found.origin}'
    right, bottom = min(left + width, record.size[0]), min(top + height, record.size[1])
    cut = max(left, 0.0), max(top, 0.0), right - max(left, 0.0), bottom - max(top, 0.0)
    if min(cut[2:]) < LEAST:
        wrong = 'lie outside of their image'
        if min(width, height) < LEAST:
            small = min(width, height) >= 0
            wrong = f'have a {"side of less than a pixel" if small else "negative width or height"}'
        size = f'an image of {record.size[0]} x {record.size[1]}'
        findings.reject(f'boxes {wrong}', CORRECT, f'{where}, {size}', tolerated=True)
        return False
    if max(map(abs, map(sub, cut, found.box))) > 1e-3:
        findings.warn('boxes cut at the edges of their image', where)
    found.box = cut
    return _has_area(found, record, findings)


def _has_area(found: Instance, record: ImageRecord, findings: Findings) -> bool:
    """Complete the area, after a look at the polygons; whether these are right."""
    _, _, width, height = found.box
    if found.segmentation and not _is_mask(found, record, findings):
        return False
    if not 0 < number_of(found.area) <= 1.01 * width * height + 1:
        if found.area is not None:
            findings.warn('areas computed anew', f'{found.area!r} of {found.origin}')
        polygons = found.segmentation if isinstance(found.segmentation, list) else []
        found.area = sum(map(polygon_area, polygons)) or width * height
    return True


def _is_mask(found: Instance, record: ImageRecord, findings: Findings) -> bool:
    """True if polygons have three or more finite points within the box, or run lengths fit."""
    if isinstance(found.segmentation, dict):
        return _are_run_lengths(found, record, findings)
    parts = [
        list(map(number_of, part)) if isinstance(part, (list, tuple)) else [math.nan]
        for part in found.segmentation or ()
    ]
    polygons = [part for part in parts if len(part) >= 6]
    if not polygons or any(
        len(part) % 2 or not all(map(math.isfinite, part)) for part in (polygons or parts)
    ):
        what = 'polygons are not three or more pairs of finite numbers'
        findings.reject(what, CORRECT, found.origin, tolerated=True)
        return False
    if len(polygons) < len(parts):
        findings.warn('parts of polygons left out, of less than three points', found.origin)
    found.segmentation = polygons
    around = box_around([_within(polygon, record) for polygon in polygons])
    return _is_in_its_box(around, found, findings)


def _is_in_its_box(around: Sequence[float], found: Instance, findings: Findings) -> bool:
    """True if polygons or run lengths, with this box around them, lie where their box is."""
    apart = np.abs(np.subtract(around, found.box))
    if (apart > APART * np.tile(found.box[2:], 2) + LEAST).any():
        what = 'polygons and boxes of objects lie in different places'
        where = f'{_short(around)} and {_short(found.box)} of {found.origin}'
        findings.reject(what, 'make one of the other', where, tolerated=True)
        return False
    return True


def _are_run_lengths(found: Instance, record: ImageRecord, findings: Findings) -> bool:
    """True if COCO's run lengths, as numbers or compressed, are those of an image of this size."""
    assert isinstance(found.segmentation, dict)
    size, counts = list(record.size[::-1]), found.segmentation.get('counts')
    if list(found.segmentation.get('size', ())) != size:
        what = 'masks by run lengths have another size than their image'
        findings.reject(what, CORRECT, found.origin)
        return False
    try:
        around = box_of_runs(counts, record.size)
    except (ValueError, TypeError, IndexError, OverflowError) as error:
        what = 'masks are not run lengths of COCO'
        findings.reject(what, CORRECT, f'{found.origin} ({first_line(error)})')
        return False
    if around is None:
        findings.reject('masks by run lengths are empty', CORRECT, found.origin, tolerated=True)
        return False
    left, top, width, height = around
    apart, by_rows = (
        np.abs(np.subtract(one, found.box)).sum() for one in (around, (top, left, height, width))
    )
    if size[0] == size[1] and by_rows + ROUNDED < apart:
        what = 'masks by run lengths fit their boxes if they are read by rows'
        findings.reject(
            what, 'write them by columns, as COCO has them', found.origin, tolerated=True
        )
        return False
    found.segmentation = dict(size=size, counts=counts)
    return _is_in_its_box(around, found, findings)


def _within(polygon: Sequence[float], record: ImageRecord) -> list[float]:
    """The points of a polygon, moved to the nearest ones of the image."""
    return [min(max(value, 0.0), record.size[i % 2]) for i, value in enumerate(polygon)]


def _short(box: Sequence[float]) -> str:
    return str([round(float(value), 2) for value in box])
