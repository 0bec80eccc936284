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

from anyfolder.errors import InputError, first_line
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
        with_masks: whether each object must have a polygon or a mask.

    Raises:
        InputError: see :func:`~anyfolder.readers.build_listing.build_listing`. Also if a file that
            the layout names is missing, incomplete or of another format.
    """
    layout, findings, names = folder.layout, folder.findings, list[str]()
    is_object_masks = layout.format == 'objects'
    units_are_stated = layout.units is not None or layout.format in ('table', 'objects')
    masks = _find_masks(folder) if is_object_masks else {}
    if is_object_masks:
        records = {
            path: ImageRecord(path, origin=str(mask_paths[0])) for path, mask_paths in masks.items()
        }
    elif layout.format == 'table':
        records = _read_tables(folder)
    else:
        records, names = _read_files(folder)

    # `build_listing` calls this once the images are known to be readable and have their sizes.
    def complete_and_check(images: Records) -> Records:
        if is_object_masks:
            images = _add_mask_objects(images, folder.codes, masks, findings)
        check_instances(images, findings, with_masks, form_is_stated=units_are_stated)
        empty = (image.path for image in images if not image.instances)
        findings.warn_all('images without an object', empty)
        return images

    draft = folder.draft(BOXES, records)
    draft.names = folder.codes.classes or names
    return build_listing(draft, findings, complete_and_check)


def _read_tables(folder: LaidOutFolder) -> RecordsByPath:
    """Read the objects of each image from the rows of tables."""
    records: RecordsByPath = {}
    for path, rows in folder.rows.items():
        # A code stands for a class in the labels: a number, a name or a color. Rows of objects may
        # omit the class if an image-level row, or the image's path, gives one for all objects.
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
    names: list[str] = []  # `parsed_images` adds names; complete after the loop
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
    """The masks of each image: either one that numbers its objects, or one per object."""
    masks = defaultdict[Path, list[Path]](list)
    for path, mask, _ in maps_by_fields(folder):
        masks[path].append(mask)
    return masks


def _add_mask_objects(
    records: Records, codes: ClassCodes, masks: Masks, findings: Findings
) -> Records:
    """The images with an object for each named value of each of their masks.

    Images are left out if a mask cannot be read, has another size, or has a value that the layout
    does not name.
    """
    # A record for each mask, since `probe_maps` reads one mask per record.
    per_mask = [replace(record, mask=mask) for record in records for mask in masks[record.path]]
    objects = defaultdict[Path, list[list[Instance]]](list)  # by image, and by mask
    probe = partial(_probe_objects, codes=codes)
    for record, objects_of_mask in probe_maps(per_mask, probe, 'masks', findings):
        if isinstance(objects_of_mask, InputError):
            where = f'{record.mask} ({first_line(objects_of_mask)})'
            findings.reject('masks have values without a class', 'name them in classes', where)
        else:
            objects[record.path].append(objects_of_mask)
    complete = [  # images with all masks valid
        record for record in records if len(objects[record.path]) == len(masks[record.path])
    ]
    for record in complete:
        record.instances = [*chain(*objects[record.path])]
    return complete


def _probe_objects(
    mask: Path, codes: ClassCodes
) -> tuple[Sequence[int], list[Instance] | InputError]:
    """The shape (H, W) of a mask, and the objects in it.

    For a value without a name, the error is returned instead of the objects. If it were raised,
    ``probe_maps`` would report the mask as unreadable.
    """
    values = values_of(mask, codes.by_color)
    try:
        names = codes.of_values(np.unique(values).tolist())
    except InputError as error:
        return values.shape, error
    objects = []
    for value, name in names.items():
        if name:
            pixels = values == value
            segmentation = dict(size=list(pixels.shape), counts=encode_run_lengths(pixels))
            box = box_of_mask(pixels)
            assert box is not None  # the value occurs in the mask
            origin = f'value {value} of {mask}'
            objects.append(Instance(name, box, segmentation, origin=origin))
    return values.shape, objects


def encode_run_lengths(mask: np.ndarray) -> list[int]:
    """A mask (H, W) as COCO's run lengths: column by column, starting with the background."""
    pixels = mask.ravel(order='F')
    changes = np.flatnonzero(np.diff(pixels)) + 1
    runs = np.diff([0, *changes, pixels.size]).tolist()
    return [0, *runs] if pixels[0] else runs
