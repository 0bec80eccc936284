"""Check objects against their images."""

from collections.abc import Iterable

from anyfolder.wording import option

from .box_meaning import MIN_SIDE, SLACK
from .boxes_in_pixels import to_pixels
from .findings import Findings
from .formats.json_values import number_of
from .geometry import clipped, polygon_area, rounded
from .object_masks import check_mask
from .records import ImageRecord, Instance, Records
from .run_lengths import area_of_runs

CORRECT = 'correct them'


def check_instances(
    records: Records, findings: Findings, with_masks: bool = False, form_is_stated: bool = False
) -> None:
    """Check objects against their images: clip them, and reject invalid ones.

    Afterward, every object has an area, and every box lies within its image, with finite sides of
    at least a pixel, up to rounding. Repeated objects are left out.

    Args:
        records: images of known size, with objects as in their files.
        findings: collects clipped and left-out objects and errors.
        with_masks: whether polygons are needed and checked. Otherwise they are dropped.
        form_is_stated: see :func:`~.boxes_in_pixels.to_pixels`.

    Raises:
        InputError: if the boxes have another form than stated, see :mod:`.box_meaning`.
    """
    to_pixels(records, findings, form_is_stated)
    for record in records:
        for instance in record.instances:
            instance.segmentation = (instance.segmentation or None) if with_masks else None
        record.instances = [
            instance for instance in record.instances if _clip_to_image(instance, record, findings)
        ]
        record.instances, repeated = without_repeats(record.instances)
        findings.warn_all(
            'objects left out, since the class has the same box twice',
            (instance.origin for instance in repeated),
        )
        findings.warn_all(
            'objects marked as crowd, ignored or difficult, neither trained on nor counted',
            (instance.origin for instance in record.instances if instance.crowd),
        )
        if with_masks:
            _reject_without_polygon(record, findings)


def without_repeats(instances: Iterable[Instance]) -> tuple[list[Instance], list[Instance]]:
    """The first instance of each class and box, and the duplicates."""
    first: dict[tuple, Instance] = {}
    repeated = [
        instance
        for instance in instances
        if first.setdefault((instance.name, *instance.box), instance) is not instance
    ]
    return list(first.values()), repeated


def _clip_to_image(instance: Instance, record: ImageRecord, findings: Findings) -> bool:
    """Clip an object to its image, and set its area; return False if it is rejected."""
    width, height = instance.box[2:]
    cut = clipped(instance.box, record.size)
    if min(cut[2:]) < MIN_SIDE - SLACK:
        where = f'{rounded(instance.box)} of {instance.origin}'
        if min(width, height) < 0:
            what = 'boxes have a negative width or height'
        elif min(width, height) < MIN_SIDE - SLACK:
            what = 'boxes have a side of less than a pixel'
        else:
            what = 'boxes lie outside of their image'
        size = f'an image of {record.size[0]} x {record.size[1]}'
        findings.reject(what, CORRECT, f'{where}, {size}', few_are_tolerated=True)
        return False
    # Less than 1e-3 pixels is rounding.
    if max(abs(after - before) for after, before in zip(cut, instance.box, strict=True)) > 1e-3:
        where = f'{rounded(instance.box)} of {instance.origin}'
        findings.warn('boxes clipped to their image', where)
    instance.box = cut
    if instance.segmentation and not check_mask(instance, record.size, findings):
        return False
    _complete_area(instance, findings)
    return True


def _complete_area(instance: Instance, findings: Findings) -> None:
    """Compute the area of an object if its file has none or an invalid one."""
    _, _, width, height = instance.box
    # An area may exceed its box by 1 % and a pixel, since numbers are rounded.
    if not 0 < number_of(instance.area) <= 1.01 * width * height + 1:
        if instance.area is not None:
            findings.warn('areas computed anew', f'{instance.area!r} of {instance.origin}')
        if isinstance(instance.segmentation, dict):
            height, width = instance.segmentation['size']
            instance.area = area_of_runs(instance.segmentation['counts'], (width, height))
            return
        polygons = instance.segmentation or []
        instance.area = sum(map(polygon_area, polygons)) or width * height


def _reject_without_polygon(record: ImageRecord, findings: Findings) -> None:
    """Reject objects without a polygon."""
    for instance in record.instances:
        if not instance.segmentation:
            what = 'objects have a box but no polygon'
            remedy = f'draw one, or give {option("task", "detection")}'
            findings.reject(what, remedy, instance.origin)
    record.instances = [instance for instance in record.instances if instance.segmentation]
