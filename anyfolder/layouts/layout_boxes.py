"""Read boxes or polygons from a folder that a layout file (``anyfolder.yaml``) describes.

They come from tables, from annotation files such as COCO's, or from masks with a value per object.
"""

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
from .row_objects import objects_in, set_class_name

RecordsByPath = dict[Path, ImageRecord]
Masks = Mapping[Path, Sequence[Path]]  # the masks of each image


def read_boxes(folder: LaidOutFolder, with_masks: bool) -> Listing:
    """The images of a layout with the objects in them.

    The classes are in the order of the key ``classes``.

    Args:
        folder: a folder with a layout for boxes.
        with_masks: whether each object must have a polygon or pixels.

    Raises:
        InputError: see :func:`~anyfolder.readers.build_listing.build_listing`.
    """
    layout, findings, names = folder.layout, folder.findings, list[str]()
    is_object_masks = layout.format == 'objects'
    units_are_stated = layout.units is not None or layout.format in ('table', 'objects')
    masks = _find_masks(folder) if is_object_masks else {}
    if masks:
        records = {
            path: ImageRecord(path, origin=str(mask_paths[0])) for path, mask_paths in masks.items()
        }
    elif layout.format == 'table':
        records = _read_tables(folder)
    else:
        records, names = _read_files(folder)

    # `build_listing` calls it once the images are known to be readable and have their sizes.
    def compare(records: Records) -> Records:
        if is_object_masks:
            records = _add_mask_objects(records, folder.codes, masks, findings)
        check_instances(records, findings, with_masks, form_is_stated=units_are_stated)
        empty = (record.path for record in records if not record.instances)
        findings.warn_all('images without an object', empty)
        return records

    draft = folder.draft(BOXES, records)
    draft.names = folder.codes.classes or names
    return build_listing(draft, findings, compare)


def _read_tables(folder: LaidOutFolder) -> RecordsByPath:
    """Read the objects of each image from the rows of tables."""
    records: RecordsByPath = {}
    for path, rows in folder.rows.items():
        # A code stands for a class in the labels: a number, a name or a color. The rows of objects
        # may lack it if a row or the path of the image has one for all of its objects.
        stated = next((row['class'] for row in rows.labels if 'class' in row), None)
        code = stated or folder.images.of_path[path].fields.get('class')
        units = folder.layout.units or BoxUnits()
        objects = objects_in(rows, units, folder.codes, code, folder.findings)
        records[path] = ImageRecord(path, instances=objects, origin=rows.origin)
    return records


def _read_files(folder: LaidOutFolder) -> tuple[RecordsByPath, list[str]]:
    """Read annotation files such as COCO's: the images, and the class names in the files.

    In YOLO, images without objects may have no label file.
    """
    records: RecordsByPath = {}
    names: list[str] = []  # filled by `parsed_images`
    for path, image, file in parsed_images(folder, names):
        record = records.setdefault(
            path, ImageRecord(path, stated_size=image.stated_size, origin=str(file.path))
        )
        for instance in image.objects:
            if folder.layout.units:
                folder.layout.units.apply(instance)
            if set_class_name(instance, instance.name, folder.codes, folder.findings):
                record.instances.append(instance)
    if folder.layout.format == 'yolo':
        unlabeled = [path for path in folder.images.of_path if path not in records]
        folder.findings.warn_all('images without a label file, taken as empty', unlabeled)
        records |= {path: ImageRecord(path) for path in unlabeled}
    return records, names


def _find_masks(folder: LaidOutFolder) -> Masks:
    """The masks of each image: one that numbers its objects, or several."""
    masks = defaultdict[Path, list[Path]](list)
    for path, mask, _ in maps_by_fields(folder):
        masks[path].append(mask)
    return masks


def _add_mask_objects(
    records: Records, codes: ClassCodes, masks: Masks, findings: Findings
) -> Records:
    """The images with an object for each named value of each of their masks.

    Images with an unreadable mask are left out.
    """
    # A record for each mask, since `probe_maps` reads one mask per record.
    per_mask = [replace(record, mask=mask) for record in records for mask in masks[record.path]]
    objects = defaultdict[Path, list[list[Instance]]](list)  # by image, and by mask
    probe = partial(_probe_objects, codes=codes)
    for record, objects_of_mask in probe_maps(per_mask, probe, 'masks', findings):
        objects[record.path].append(objects_of_mask)
    complete = [  # images with all masks readable
        record for record in records if len(objects[record.path]) == len(masks[record.path])
    ]
    for record in complete:
        record.instances = [*chain(*objects[record.path])]
    return complete


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
    """A mask (H, W) as COCO's run lengths: column by column, starting with the background."""
    pixels = mask.ravel(order='F')
    changes = np.flatnonzero(np.diff(pixels)) + 1
    runs = np.diff([0, *changes, pixels.size]).tolist()
    return [0, *runs] if pixels[0] else runs
