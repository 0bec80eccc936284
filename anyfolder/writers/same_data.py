"""Compare a dataset that was read back with the one that was written."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from anyfolder.dataset import Dataset, Image, Object, object_mask
from anyfolder.sampling import evenly_spaced

from .placed_images import PlacedImage

MAX_MAPS = 200  # number of maps whose pixels are compared
MAX_SHIFT = 0.05  # pixels, by which a rounded coordinate may differ


def difference(data: Dataset, placed: Sequence[PlacedImage], again: Dataset) -> str:
    """The first difference of two datasets in words; empty if they are equal.

    Args:
        data: the data that was written.
        placed: its images, with their new names.
        again: the data that was read back.
    """
    if {*data.classes} != {*again.classes}:
        first = min({*data.classes} ^ {*again.classes})
        return f'the class {first!r} is only in one of them'
    found = {image.path.stem: (split, image) for split, image in again.images()}
    if len(found) != len(placed):
        return f'{len(found)} images instead of {len(placed)}'
    compared = {*evenly_spaced(len(placed), MAX_MAPS)}
    for number, (split, image, name) in enumerate(placed):
        other = found.get(Path(name).stem)
        if other is None or other[0] != split:
            return f'{name!r} is not in the split {split!r}'
        if {*image.labels} != {*other[1].labels} and not _is_drawn(data, image):
            return f'{name!r} has other classes'
        if not _same_objects(image, other[1], data.task):
            return f'{name!r} has other objects'
        if number in compared and not _same_maps(data, image, again, other[1]):
            return f'{name!r} has another map'
    return ''


def _is_drawn(data: Dataset, image: Image) -> bool:
    """True if a mask is drawn from polygons, so its classes are only known from its pixels."""
    return data.task == 'segmentation' and image.mask is None


def _same_objects(image: Image, other: Image, task: str) -> bool:
    if len(image.objects) != len(other.objects) or task == 'segmentation':
        return task == 'segmentation'  # drawn polygons become masks
    pairs = zip(_sorted(image.objects), _sorted(other.objects), strict=True)
    return all(_same_object(one, two, image.size) for one, two in pairs)


def _sorted(objects: Sequence[Object]) -> list[Object]:
    return sorted(objects, key=lambda one: (one.label, one.crowd, [round(x, 1) for x in one.box]))


def _same_object(one: Object, two: Object, size: tuple[int, int]) -> bool:
    if (one.label, one.crowd) != (two.label, two.crowd):
        return False
    if one.segmentation is None or two.segmentation is None:
        return one.segmentation is two.segmentation and _near(one.box, two.box)
    if isinstance(one.segmentation, Mapping) or isinstance(two.segmentation, Mapping):
        return bool((object_mask(one, size) == object_mask(two, size)).all())
    parts = [*map(len, one.segmentation)], [*map(len, two.segmentation)]
    return parts[0] == parts[1] and all(map(_near, one.segmentation, two.segmentation))


def _near(one: Any, two: Any) -> bool:
    return bool(np.allclose(one, two, rtol=0, atol=MAX_SHIFT))


def _same_maps(data: Dataset, image: Image, again: Dataset, other: Image) -> bool:
    if data.task == 'depth':
        return bool(np.allclose(data.depth(image), again.depth(other), rtol=1e-5))
    if data.task == 'panoptic':
        return bool((data.segments(image) == again.segments(other)).all())
    if data.task != 'segmentation':
        return True
    numbers = np.arange(256)
    numbers[: len(data.classes)] = [again.number_of(name) for name in data.classes]
    return bool((numbers[data.class_map(image)] == again.class_map(other)).all())
