"""Segmentation from the polygons or run lengths of objects, which are drawn as masks."""

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
    """Read a data set of polygons as masks.

    Args:
        tree: the files of the folder.
        findings: the findings of the search for mask files, which found none.

    Raises:
        InputError: if there are no polygons either, and see
            :func:`~.box_folders.read_annotated_folder`.
    """
    formats = formats_of(tree)
    if not formats:
        check_array_masks(tree)
        findings.check()  # raises if the names of images and masks differ
        raise InputError(
            f"{str(tree.folder)!r} must have a folder 'images' and a folder 'masks' for "
            f'{option("task", "segmentation")}, with masks of the same names, or polygons as COCO, '
            'YOLO or LabelMe.'
        )
    listing = read_format(
        tree, formats, findings.skip_invalid, with_masks=True, with_background=True
    )
    return with_drawn_masks(listing)


def with_drawn_masks(listing: Listing) -> Listing:
    """Turn a listing of polygons into one of masks, whose first class is the background.

    The listing is changed. :func:`class_map` draws the masks when they are needed.

    Raises:
        InputError: if there are more classes than a mask can hold.
    """
    listing.form += ' polygons as masks'
    for record in chain(*listing.parts.values()):
        for instance in record.instances:
            if instance.name == BACKGROUND_SHAPE:
                instance.name = BACKGROUND
    names = listing.classes
    listing.classes = (
        BACKGROUND,
        *(name for name in names if name not in (BACKGROUND, BACKGROUND_SHAPE)),
    )
    if len(listing.classes) > NOT_LABELED:  # the numbers of classes are below that
        raise InputError(
            f'{str(listing.folder)!r} has polygons of {len(listing.classes) - 1} classes, but '
            f'masks can have {NOT_LABELED - 1} and the background; merge some, or give '
            f'{option("task", "instance")}.'
        )
    listing.masks = MaskValues(listing.classes, {})
    return listing


def class_map(listing: Listing, record: ImageRecord) -> np.ndarray:
    """The class number of each pixel (H, W), uint8; 255 for unlabeled pixels."""
    if record.mask is None:
        return _draw(record, listing.classes)
    assert listing.masks is not None
    return listing.masks.apply(values_of(record.mask, listing.masks.by_color))


def _draw(record: ImageRecord, classes: tuple[str, ...]) -> np.ndarray:
    """The mask (H, W), uint8, of an image's objects, largest first, on class 0.

    The pixels of crowds are not labeled.
    """
    mask = np.zeros(record.size[::-1], np.uint8)
    for instance in sorted(record.instances, key=lambda instance: -float(instance.area)):
        value = NOT_LABELED if instance.crowd else classes.index(instance.name)
        if isinstance(instance.segmentation, dict):
            mask[mask_of(instance.segmentation['counts'], record.size)] = value
        else:
            for polygon in instance.segmentation or ():
                draw_polygon(mask, polygon, value)
    return mask
