"""Convert boxes and polygons of any form to pixels of their image."""

import math
from collections.abc import Iterable, Mapping

from .box_meaning import check_meaning
from .findings import Findings
from .formats.json_values import number_of
from .geometry import BOX_FORMS, box_around, scaled, upright_box
from .object_masks import box_of_valid_runs
from .records import ImageRecord, Instance, Records

RELATIVE_TOLERANCE = 0.05  # fraction of the image by which rounded values may exceed it


def to_pixels(records: Records, findings: Findings, form_is_stated: bool = False) -> None:
    """Convert the boxes and polygons of all images to pixels, and the boxes to one form.

    An object is rejected and removed if its box is invalid, or if it has no box and its polygons or
    RLE are invalid. The outline of an object that also has a box is checked later, by
    :mod:`.object_masks`, and only if masks are needed; but values beyond 0 to 1 where fractions are
    stated are always rejected. An object without a box gets the upright one around its outline, and
    a rotated box is replaced by the upright one around it.

    Args:
        records: images of known size.
        findings: collects errors.
        form_is_stated: True if the user stated the form of the boxes and the first pixel, 0 or 1.
            Both are then taken as stated instead of checked.

    Raises:
        InputError: if the boxes have another form than stated, see :mod:`.box_meaning`.
    """
    for record in records:
        record.instances = [
            instance for instance in record.instances if _convert_numbers(instance, findings)
        ]
    if not form_is_stated:
        check_meaning(records)
    for record in records:
        record.instances = [
            instance
            for instance in record.instances
            if _convert_to_pixels(instance, record, findings)
        ]
    _count_from_0(records, form_is_stated)
    for record in records:
        for instance in record.instances:
            upright = upright_box(instance.box, number_of(instance.degrees))
            if upright:  # the box is rotated
                what = 'rotated boxes, replaced by the upright rectangle around them'
                findings.warn(what, f'{instance.degrees} degrees of {instance.origin}')
                instance.box = upright


def _convert_numbers(instance: Instance, findings: Findings) -> bool:
    """Convert the values of an object to numbers; return False if it is rejected as invalid."""
    if isinstance(instance.segmentation, list):
        instance.segmentation = [
            [number_of(value) for value in part] if isinstance(part, (list, tuple)) else [math.nan]
            for part in instance.segmentation
        ]
    # A value that is not a list is rejected below, like a list of another length.
    if isinstance(instance.box, (str, Mapping)) or not isinstance(instance.box, Iterable):
        instance.box = [instance.box] if instance.box else ()
    box = [number_of(value) for value in instance.box]
    if not box and isinstance(instance.segmentation, dict):
        return True  # the box around its RLE is found later
    if not box and isinstance(instance.segmentation, list):
        # Whether there are three points is checked later, if polygons are needed.
        has_point = any(len(part) > 1 for part in instance.segmentation)
        if has_point and all(math.isfinite(x) for part in instance.segmentation for x in part):
            return True
        what = 'polygons are empty, or have values that are not finite numbers'
        findings.reject(what, 'correct them', instance.origin, few_are_tolerated=True)
        return False
    if len(box) != 4 or not all(map(math.isfinite, box)):
        what = 'boxes are not 4 finite numbers'
        example = f'{list(instance.box)!r} of {instance.origin}'
        findings.reject(what, 'correct them', example, few_are_tolerated=True)
        return False
    instance.box = tuple(box)
    return True


def _convert_to_pixels(instance: Instance, record: ImageRecord, findings: Findings) -> bool:
    """Convert an object to pixels; return False if it is rejected.

    It is rejected if it should have fractions, and has values far below 0 or above 1, or if it has
    no box and its RLE is invalid.
    """
    if not len(instance.box):
        instance.degrees = None  # an outline is already rotated
    if not len(instance.box) and isinstance(instance.segmentation, dict):
        around = box_of_valid_runs(instance, record.size, findings)
        instance.box = around or ()
        instance.form, instance.relative, instance.from_1 = 'xywh', False, False
        return around is not None
    polygons = instance.segmentation if isinstance(instance.segmentation, list) else []
    if instance.relative:
        values = [*instance.box, *(value for part in polygons for value in part)]
        if max(values) > 1 + RELATIVE_TOLERANCE or min(values) < -RELATIVE_TOLERANCE:
            findings.reject(
                'objects have values beyond 0 to 1, so not fractions of the width and height',
                'divide pixels by the size of the image',
                f'{values!r}, {instance.origin}',
            )
            return False
        polygons = [scaled(part, record.size) for part in polygons]
        instance.segmentation = polygons or instance.segmentation
    if not len(instance.box):
        instance.box = box_around(polygons)
    else:
        instance.box = BOX_FORMS[instance.form].as_xywh(*instance.box)
        instance.box = scaled(instance.box, record.size) if instance.relative else instance.box
    instance.form, instance.relative = 'xywh', False
    return True


def _count_from_0(records: Records, form_is_stated: bool) -> None:
    """Shift the objects whose format counts pixels from 1, as Pascal VOC does.

    Many programs write VOC's format, but count from 0. An upper left corner at 0 shows that, and
    then no object is shifted, unless the user stated that pixels count from 1.
    """
    from_1_instances = [
        instance for record in records for instance in record.instances if instance.from_1
    ]
    are_shifted = form_is_stated or not any(
        min(instance.box[:2]) == 0 for instance in from_1_instances
    )
    for instance in from_1_instances:
        instance.from_1 = False
        if are_shifted:
            left, top, width, height = instance.box
            instance.box = left - 1, top - 1, width, height
            if isinstance(instance.segmentation, list):
                instance.segmentation = [
                    [value - 1 for value in part] for part in instance.segmentation
                ]
