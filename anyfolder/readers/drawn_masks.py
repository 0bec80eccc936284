"""Draw masks from the polygons of objects."""

from itertools import chain

import numpy as np

from anyfolder.errors import InputError
from anyfolder.wording import option

from .array_masks import check_array_masks
from .box_folders import BACKGROUND_SHAPE, read_format
from .box_formats import formats_of
from .findings import Findings
from .image_tree import Tree
from .listing import Listing
from .mask_classes import NOT_LABELED, MaskValues
from .mask_values import values_of
from .polygon_masks import draw_polygon
from .records import ImageRecord
from .run_lengths import mask_of

BACKGROUND = 'background'


def from_polygons(tree: Tree, findings: Findings) -> Listing:
    """Read a polygon data set as masks."""
    forms = formats_of(tree)
    if not forms:
        check_array_masks(tree)
        findings.check()  # raises if the names of images and masks differ
        raise InputError(
            f"{str(tree.folder)!r} must have a folder 'images' and a folder 'masks' for "
            f'{option("task", "segmentation")}, with masks of the same names, or polygons as COCO, '
            'YOLO or '
            'LabelMe.'
        )
    listing = read_format(tree, forms, findings.skip_invalid, with_masks=True, with_background=True)
    return with_drawn_masks(listing)


def with_drawn_masks(listing: Listing) -> Listing:
    """Convert a listing of polygons to one of masks, whose first class is the background."""
    listing.form += ' polygons as masks'
    for record in chain(*listing.parts.values()):
        for found in record.instances:
            found.name = BACKGROUND if found.name == BACKGROUND_SHAPE else found.name
    names = listing.classes
    listing.classes = (
        BACKGROUND,
        *(name for name in names if name not in (BACKGROUND, BACKGROUND_SHAPE)),
    )
    listing.masks = MaskValues(listing.classes, {})
    return listing


def class_map(found: Listing, record: ImageRecord) -> np.ndarray:
    """The class number of each pixel (H, W), uint8, 255 for none."""
    if record.mask is None:
        return _drawn(record, found.classes)
    assert found.masks is not None
    return found.masks.apply(values_of(record.mask, found.masks.by_color))


def _drawn(record: ImageRecord, classes: tuple[str, ...]) -> np.ndarray:
    """The mask (H, W), uint8, of polygons, largest first, on class 0. Crowds are not labeled."""
    mask = np.zeros(record.size[::-1], np.uint8)
    for found in sorted(record.instances, key=lambda found: -float(found.area)):
        value = NOT_LABELED if found.crowd else classes.index(found.name)
        if isinstance(found.segmentation, dict):
            mask[mask_of(found.segmentation['counts'], record.size)] = value
        else:
            for polygon in found.segmentation or ():
                draw_polygon(mask, polygon, value)
    return mask
