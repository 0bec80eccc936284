"""Check objects against their images."""

from collections.abc import Iterable
from operator import sub

from anyfolder.wording import option

from .box_meaning import MIN_SIDE, SLACK
from .boxes_in_pixels import to_pixels
from .findings import Findings
from .formats.json_values import number_of
from .geometry import clipped, polygon_area, rounded
from .object_masks import is_mask
from .records import ImageRecord, Instance, Records

CORRECT = 'correct them'


def check_instances(
    records: Records, findings: Findings, with_masks: bool = False, is_certain: bool = False
) -> None:
    """Check objects against their images: clip them, and reject invalid ones.

    Afterward, every box has an area and finite sides of at least a rounded pixel within its image.

    Args:
        records: images of known size, with objects as in their files.
        findings: collects clipped and left-out objects and errors.
        with_masks: whether polygons are needed and checked. Otherwise they are dropped.
        is_certain: see :func:`~.boxes_in_pixels.to_pixels`.

    Raises:
        InputError: if the boxes have another form than stated, see :mod:`.box_meaning`.
    """
    to_pixels(records, findings, is_certain)
    for record in records:
        for found in record.instances:
            found.segmentation = (found.segmentation or None) if with_masks else None
        record.instances = [found for found in record.instances if _fits(found, record, findings)]
        record.instances, repeated = without_repeats(record.instances)
        findings.warn_all(
            'objects left out, since the class has the same box twice',
            (found.origin for found in repeated),
        )
        findings.warn_all(
            'objects marked as crowd, ignored or difficult, neither trained on nor counted',
            (found.origin for found in record.instances if found.crowd),
        )
        if with_masks:
            _leave_out_boxes(record, findings)


def without_repeats(instances: Iterable[Instance]) -> tuple[list[Instance], list[Instance]]:
    """The first instance of each class and box, and the duplicates."""
    first: dict[tuple, Instance] = {}
    repeated = [
        found
        for found in instances
        if first.setdefault((found.name, *found.box), found) is not found
    ]
    return list(first.values()), repeated


def _fits(found: Instance, record: ImageRecord, findings: Findings) -> bool:
    """Clip a box to its image; return whether enough of it is left."""
    width, height = found.box[2:]
    cut = clipped(found.box, record.size)
    if min(cut[2:]) < MIN_SIDE - SLACK:
        where = f'{rounded(found.box)} of {found.origin}'
        wrong = 'lie outside of their image'
        if min(width, height) < MIN_SIDE - SLACK:
            small = min(width, height) >= 0
            wrong = f'have a {"side of less than a pixel" if small else "negative width or height"}'
        size = f'an image of {record.size[0]} x {record.size[1]}'
        findings.reject(f'boxes {wrong}', CORRECT, f'{where}, {size}', tolerated=True)
        return False
    if max(map(abs, map(sub, cut, found.box))) > 1e-3:
        where = f'{rounded(found.box)} of {found.origin}'
        findings.warn('boxes clipped to their image', where)
    found.box = cut
    if found.segmentation and not is_mask(found, record.size, findings):
        return False
    _complete_area(found, findings)
    return True


def _complete_area(found: Instance, findings: Findings) -> None:
    """Compute the area of an object if its file has none or an invalid one."""
    _, _, width, height = found.box
    if not 0 < number_of(found.area) <= 1.01 * width * height + 1:
        if found.area is not None:
            findings.warn('areas computed anew', f'{found.area!r} of {found.origin}')
        polygons = found.segmentation if isinstance(found.segmentation, list) else []
        found.area = sum(map(polygon_area, polygons)) or width * height


def _leave_out_boxes(record: ImageRecord, findings: Findings) -> None:
    """Reject objects without a polygon."""
    for found in record.instances:
        if not found.segmentation:
            what = 'objects have a box but no polygon'
            remedy = f'draw one, or give {option("task", "detection")}'
            findings.reject(what, remedy, found.origin)
    record.instances = [found for found in record.instances if found.segmentation]
