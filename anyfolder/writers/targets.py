"""The table of formats that can be written, with what each cannot hold."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from anyfolder.dataset import Dataset, Object

from .placed_images import PlacedImage
from .write_classes import obstacle_to_folders, write_folders, write_table
from .write_coco import write_coco
from .write_maps import write_maps
from .write_voc import write_voc
from .write_yolo import write_yolo

# Takes the data, its images with their new names, the folder, and whether images are copied.
Writer = Callable[[Dataset, Sequence[PlacedImage], Path, bool], None]


class Drop(NamedTuple):
    """Objects that a format cannot hold: their name in the plural, and a test for them."""

    what: str
    is_dropped: Callable[[Dataset, Object], bool]


class Target(NamedTuple):
    """A format that can be written.

    Attributes:
        name: the common name of the format.
        tasks: the tasks of its labels.
        write: writes a dataset to a folder, with images as copies or links.
        drops: the objects that it cannot hold.
        obstacle: returns why it cannot hold a dataset at all, or empty text.
        keeps_class_order: whether it preserves the order of classes.
    """

    name: str
    tasks: tuple[str, ...]
    write: Writer
    drops: tuple[Drop, ...] = ()
    obstacle: Callable[[Dataset], str] = lambda data: ''
    keeps_class_order: bool = True


def _is_not_a_polygon(data: Dataset, obj: Object) -> bool:
    """True for an object that is not a single polygon, if polygons are written."""
    is_polygon = isinstance(obj.segmentation, list) and len(obj.segmentation) == 1
    return data.task == 'instance' and not is_polygon


TARGETS = {
    'coco': Target('COCO', ('detection', 'instance', 'panoptic'), write_coco),
    'yolo': Target(
        'YOLO',
        ('detection', 'instance'),
        write_yolo,
        (
            Drop('objects marked as crowd or to be ignored', lambda data, obj: obj.crowd),
            Drop('objects with several polygons or run lengths', _is_not_a_polygon),
        ),
    ),
    'voc': Target('Pascal VOC', ('detection',), write_voc, keeps_class_order=False),
    'folders': Target(
        'folders of classes',
        ('classification',),
        write_folders,
        obstacle=obstacle_to_folders,
        keeps_class_order=False,
    ),
    'masks': Target('images and masks', ('segmentation', 'depth'), write_maps),
    'csv': Target('a table', ('classification', 'detection'), write_table, keeps_class_order=False),
}
