"""Images with boxes or polygons by a layout: from tables, annotation files or numbered masks."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np

from anyfolder.readers.build_listing import BOXES, build_listing
from anyfolder.readers.findings import Findings
from anyfolder.readers.geometry import box_of_mask
from anyfolder.readers.listing import Listing
from anyfolder.readers.mask_values import values_of
from anyfolder.readers.object_checks import check_instances
from anyfolder.readers.pixel_maps import probe_maps
from anyfolder.readers.records import ImageRecord, Instance, Records

from .box_units import BoxUnits
from .class_codes import ClassCodes
from .laid_out_folder import LaidOutFolder
from .layout_labels import parsed_images
from .paired_maps import maps_by_fields
from .row_objects import name_object, objects_in

Found = dict[Path, ImageRecord]
Masks = Mapping[Path, Sequence[Path]]  # by image


def read_boxes(folder: LaidOutFolder, with_masks: bool) -> Listing:
    """The images of a layout with the objects in them, and classes in the order of ``classes``.

    Args:
        folder: a folder with a layout for boxes.
        with_masks: whether each object must have a polygon or pixels.

    Raises:
        InputError: see :func:`~anyfolder.readers.build_listing.build_listing`.
    """
    layout, findings, names = folder.layout, folder.findings, list[str]()
    masks = _masks_of(folder) if layout.format == 'objects' else {}
    is_certain = layout.units is not None or layout.format in ('table', 'objects')
    if masks:
        records = {path: ImageRecord(path, origin=str(found[0])) for path, found in masks.items()}
    else:
        records = (_of_tables if layout.format == 'table' else _of_files)(folder, names)

    def compare(records: Records) -> Records:
        if folder.layout.format == 'objects':
            records = _with_pixels(records, folder.codes, masks, findings)
        check_instances(records, findings, with_masks, is_certain)
        empty = (record.path for record in records if not record.instances)
        findings.warn_all('images without an object', empty)
        return records

    draft = folder.draft(BOXES, records)
    draft.names = folder.codes.classes or names
    return build_listing(draft, findings, compare)


def _of_tables(folder: LaidOutFolder, names: list[str]) -> Found:
    found: Found = {}
    for path, rows in folder.rows.items():
        own = next((row['class'] for row in rows.labels if 'class' in row), None)
        code = own or folder.images.of_path[path].fields.get('class')
        units = folder.layout.units or BoxUnits()
        objects = objects_in(rows, units, folder.codes, code, folder.findings)
        found[path] = ImageRecord(path, instances=objects, origin=rows.origin)
    return found


def _of_files(folder: LaidOutFolder, names: list[str]) -> Found:
    """The images of files in a format such as COCO. YOLO has no files for empty images."""
    found: Found = {}
    for path, image, file in parsed_images(folder, names):
        record = found.setdefault(
            path, ImageRecord(path, stated=image.stated, origin=str(file.path))
        )
        for one in image.objects:
            if folder.layout.units:
                folder.layout.units.apply(one)
            if name_object(one, one.name, None, folder.codes, folder.findings):
                record.instances.append(one)
    if folder.layout.format == 'yolo':
        rest = [path for path in folder.images.of_path if path not in found]
        what = 'images without a label file, taken as images without objects'
        folder.findings.warn_all(what, rest)
        found |= {path: ImageRecord(path) for path in rest}
    return found


def _masks_of(folder: LaidOutFolder) -> Masks:
    """The masks of each image: one that numbers the objects, or one per object."""
    found = defaultdict[Path, list[Path]](list)
    for path, mask, _ in maps_by_fields(folder):
        found[path].append(mask)
    return found


def _with_pixels(records: Records, codes: ClassCodes, masks: Masks, findings: Findings) -> Records:
    """The images with an object for each value of their masks that has a name."""
    each = [replace(record, mask=mask) for record in records for mask in masks[record.path]]
    objects = defaultdict[Path, list[list[Instance]]](list)
    for one, found in probe_maps(each, partial(_probe_objects, codes=codes), 'masks', findings):
        objects[one.path].append(found)
    whole = [record for record in records if len(objects[record.path]) == len(masks[record.path])]
    for record in whole:
        record.instances = [*chain(*objects[record.path])]
    return whole


def _probe_objects(mask: Path, codes: ClassCodes) -> tuple[Sequence[int], list[Instance]]:
    """The shape (H, W) of a mask, and the objects in it.

    Raises:
        InputError: for a value without a name.
    """
    values = values_of(mask, codes.by_color)
    objects = []
    for value, name in codes.of_values(np.unique(values).tolist()).items():
        if name:
            pixels = values == value
            runs = dict(size=list(pixels.shape), counts=runs_of(pixels))
            origin = f'value {value} of {mask}'
            objects.append(Instance(name, box_of_mask(pixels) or (), runs, origin=origin))
    return values.shape, objects


def runs_of(mask: np.ndarray) -> list[int]:
    """A mask (H, W) as COCO's run lengths, column by column, beginning outside of the object."""
    pixels = mask.ravel(order='F')
    changes = np.flatnonzero(np.diff(pixels)) + 1
    runs = np.diff([0, *changes, pixels.size]).tolist()
    return [0, *runs] if pixels[0] else runs
