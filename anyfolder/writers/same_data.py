"""Compare a dataset that was read back with the one that was written."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from anyfolder.dataset import Dataset, Image, Object, object_mask
from anyfolder.sampling import evenly_spaced

from .placed_images import PlacedImage

MAX_MAPS = 200  # maximum number of maps whose pixels are compared
MAX_SHIFT = 0.05  # pixels, by which a rounded coordinate may differ


def difference(data: Dataset, placed: Sequence[PlacedImage], read_back: Dataset) -> str:
    """The first difference of two datasets in words; empty if they are equal.

    Args:
        data: the data that was written.
        placed: its images, with their new names.
        read_back: the data that was read back.
    """
    if {*data.classes} != {*read_back.classes}:
        first = min({*data.classes} ^ {*read_back.classes})
        return f'the class {first!r} is only in one of them'
    by_stem = {image.path.stem: (split, image) for split, image in read_back.images()}
    if len(by_stem) != len(placed):
        return f'{len(by_stem)} images instead of {len(placed)}'
    compared = {*evenly_spaced(len(placed), MAX_MAPS)}
    for number, (split, image, name) in enumerate(placed):
        other_split, other = by_stem.get(Path(name).stem, (None, None))
        if other is None or other_split != split:
            return f'{name!r} is not in the split {split!r}'
        if {*image.labels} != {*other.labels} and not _is_drawn(data, image):
            return f'{name!r} has other classes'
        if not _same_objects(image, other, data.task):
            return f'{name!r} has other objects'
        if number in compared and not _same_maps(data, image, read_back, other):
            return f'{name!r} has another map'
    return ''


def _is_drawn(data: Dataset, image: Image) -> bool:
    """True if a mask is drawn from polygons: only its pixels show its classes, not ``labels``."""
    return data.task == 'segmentation' and image.mask is None


def _same_objects(image: Image, other: Image, task: str) -> bool:
    if task == 'segmentation':  # polygons were drawn as masks
        return True
    if len(image.objects) != len(other.objects):
        return False
    pairs = zip(_sort_objects(image.objects), _sort_objects(other.objects), strict=True)
    if all(_same_object(first, second, image.size) for first, second in pairs):
        return True
    # Rounding may have changed the order of objects near each other.
    remaining = [*other.objects]
    for first in image.objects:
        found = (i for i, second in enumerate(remaining) if _same_object(first, second, image.size))
        if (number := next(found, None)) is None:
            return False
        del remaining[number]
    return True


def _sort_objects(objects: Sequence[Object]) -> list[Object]:
    return sorted(objects, key=lambda obj: (obj.label, obj.crowd, [round(x, 1) for x in obj.box]))


def _same_object(first: Object, second: Object, size: tuple[int, int]) -> bool:
    """Whether two objects in an image of this size are equal, up to rounding."""
    if (first.label, first.crowd) != (second.label, second.crowd):
        return False
    if first.segmentation is None or second.segmentation is None:
        return first.segmentation is second.segmentation and _are_near(first.box, second.box)
    if isinstance(first.segmentation, Mapping) or isinstance(second.segmentation, Mapping):
        return bool((object_mask(first, size) == object_mask(second, size)).all())
    lengths = [*map(len, first.segmentation)]
    same_lengths = lengths == [*map(len, second.segmentation)]
    return same_lengths and all(map(_are_near, first.segmentation, second.segmentation))


def _are_near(first: Any, second: Any) -> bool:
    return bool(np.allclose(first, second, rtol=0, atol=MAX_SHIFT))


def _same_maps(data: Dataset, image: Image, read_back: Dataset, other: Image) -> bool:
    if data.task == 'depth':
        return bool(np.allclose(data.depth(image), read_back.depth(other), rtol=1e-5))
    if data.task == 'panoptic':
        return bool((data.segments(image) == read_back.segments(other)).all())
    if data.task != 'segmentation':
        return True
    # The number of each class in the data read back; 255 stays unlabeled.
    numbers = np.arange(256)
    numbers[: len(data.classes)] = [read_back.number_of(name) for name in data.classes]
    return bool((numbers[data.class_map(image)] == read_back.class_map(other)).all())
