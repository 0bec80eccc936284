"""Convert boxes and polygons of any form to pixels of their image."""

import math

from .box_meaning import check_meaning
from .findings import Findings
from .formats.json_values import number_of
from .geometry import BOX_FORMS, box_around, box_around_turned, scaled
from .records import ImageRecord, Instance, Records

BEYOND = 0.05  # fraction of the image by which rounding may exceed it


def to_pixels(records: Records, findings: Findings, is_certain: bool = False) -> None:
    """Convert the boxes and polygons of all images to pixels, and the boxes to one form.

    Objects with invalid numbers are rejected and removed. The box is the one around the polygons if
    the format has only polygons.

    Args:
        records: images of known size.
        findings: collects errors.
        is_certain: whether the user stated the form of boxes, so it is not checked.

    Raises:
        InputError: if the boxes have another form than stated, see :mod:`.box_meaning`.
    """
    for record in records:
        record.instances = [found for found in record.instances if _has_numbers(found, findings)]
    if not is_certain:
        check_meaning(records)
    for record in records:
        record.instances = [one for one in record.instances if _is_in_pixels(one, record, findings)]
    _count_from_0(records, is_certain)
    for record in records:
        for found in record.instances:
            turned = box_around_turned(found.box, number_of(found.degrees))
            if turned:
                what = 'rotated boxes, replaced by the upright rectangle around them'
                findings.warn(what, f'{found.degrees} degrees of {found.origin}')
                found.box = turned


def _has_numbers(found: Instance, findings: Findings) -> bool:
    """Convert the values of an object to numbers; return whether that is possible."""
    if isinstance(found.segmentation, list):
        found.segmentation = [
            [number_of(value) for value in part] if isinstance(part, (list, tuple)) else [math.nan]
            for part in found.segmentation
        ]
    box = [number_of(value) for value in found.box]
    if not box and isinstance(found.segmentation, list):
        values = [value for part in found.segmentation for value in part]
        if len(values) > 1 and all(map(math.isfinite, values)):
            return True
        what = 'polygons are not three or more pairs of finite numbers'
        findings.reject(what, 'correct them', found.origin, tolerated=True)
        return False
    if len(box) != 4 or not all(map(math.isfinite, box)):
        what = 'boxes are not 4 finite numbers'
        example = f'{list(found.box)!r} of {found.origin}'
        findings.reject(what, 'correct them', example, tolerated=True)
        return False
    found.box = tuple(box)
    return True


def _is_in_pixels(found: Instance, record: ImageRecord, findings: Findings) -> bool:
    """Convert an object to pixels; False if its values are not fractions of the image."""
    polygons = found.segmentation if isinstance(found.segmentation, list) else []
    if found.relative:
        values = [*found.box, *(value for part in polygons for value in part)]
        if max(values) > 1 + BEYOND or min(values) < -BEYOND:
            findings.reject(
                'objects have values beyond 0 to 1, but need fractions of the width and height',
                'divide pixels by the size of the image',
                f'{values!r}, {found.origin}',
            )
            return False
        polygons = [scaled(part, record.size) for part in polygons]
        found.segmentation = polygons or found.segmentation
    if not len(found.box):
        found.box = box_around(polygons)
    else:
        found.box = BOX_FORMS[found.form].as_xywh(*found.box)
        found.box = scaled(found.box, record.size) if found.relative else found.box
    found.form, found.relative = 'xywh', False
    return True


def _count_from_0(records: Records, is_certain: bool) -> None:
    """Shift objects that count pixels from 1. Unless stated, a corner at 0 means that none do."""
    counted = [found for record in records for found in record.instances if found.from_1]
    from_1 = is_certain or not any(min(found.box[:2]) == 0 for found in counted)
    for found in counted:
        found.from_1 = False
        if from_1:
            left, top, width, height = found.box
            found.box = left - 1, top - 1, width, height
            if isinstance(found.segmentation, list):
                found.segmentation = [[value - 1 for value in part] for part in found.segmentation]
