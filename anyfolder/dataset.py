"""The result of :func:`anyfolder.read`: images by split with their labels, and notes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .pixels.depth_maps import read_depth
from .pixels.images import read_image
from .readers.drawn_masks import class_map
from .readers.listing import Listing
from .readers.panoptic import numbers_in
from .readers.polygon_masks import draw_polygon
from .readers.records import ImageRecord, Instance
from .readers.run_lengths import mask_of
from .readers.splits import Split


class Note(NamedTuple):
    """A repair, an omission or another finding.

    Attributes:
        what: the kind, in the plural, such as ``'boxes clipped to their image'``.
        count: the number of cases.
        examples: the first ones, at most 1000.
    """

    what: str
    count: int  # type: ignore[assignment]  # hides tuple.count, which nobody calls
    examples: Sequence[str]


@dataclass(frozen=True)
class Object:
    """An object in an image.

    Attributes:
        label: the class name; empty for a region to be ignored, whatever its class.
        box: left, top, width and height in pixels of the image as it is displayed.
        segmentation: polygons ``[[x, y, x, y, ...], ...]`` in pixels, or COCO's run lengths as a
            dict of ``size`` (height, width) and ``counts``; None if there is only a box.
        area: the area of the segmentation or the box in pixels, as annotated if possible.
        crowd: whether it is a group, difficult or to be ignored: neither trained on nor counted.
        segment: its number in :meth:`Dataset.segments`, 0 in other data.
    """

    label: str
    box: tuple[float, float, float, float]
    segmentation: Sequence[Sequence[float]] | Mapping[str, Any] | None = None
    area: float = 0.0
    crowd: bool = False
    segment: int = 0


@dataclass(frozen=True)
class Image:
    """An image and its labels.

    Attributes:
        path: the file.
        size: width and height in pixels as it is displayed, with the orientation in EXIF applied;
            (0, 0) if the file was not read, as in classification data of more than 100,000 images.
        bands: the number of bands; 0 for a photograph.
        labels: its classes: one in most data, any number in multi-label data; for segmentation, the
            classes in its mask; empty for objects.
        objects: the objects in it.
        mask: the file with the class, depth or segment of each pixel, or None.
    """

    path: Path
    size: tuple[int, int]
    bands: int = 0
    labels: tuple[str, ...] = ()
    objects: tuple[Object, ...] = ()
    mask: Path | None = None

    def pixels(self) -> np.ndarray:
        """The pixels (H, W, 3) in BGR as displayed, uint8, or the values (H, W, bands) of bands.

        Raises:
            InputError: if the file cannot be read.
        """
        return read_image(self.path)


@dataclass(frozen=True)
class Dataset:
    """The content of a folder, checked against the pixels of its images.

    Attributes:
        task: what the labels are for, one of :data:`anyfolder.TASKS`.
        format: the name of the folder's format: ``'COCO'``, ``'folders of classes'``.
        source: the folder that was given.
        folder: the folder of the data: the source, or the only folder in it.
        classes: the class names in the order of their numbers, from 0; none for depth.
        splits: the images of ``'train'``, ``'val'`` and ``'test'``.
        held_out: whether ``'val'`` was drawn from the training images, since the folder has no
            validation split.
        multi_label: whether an image may have several classes, or none.
        stuff: for panoptic data, the number of stuff classes, which are the last ones.
        scale: for depth, meters per unit in the maps.
        notes: repairs, omissions and other findings.
        listing: the data in the readers' own form, which may change between versions.
    """

    task: str
    format: str
    source: Path
    folder: Path
    classes: tuple[str, ...]
    splits: Mapping[Split, Sequence[Image]]
    held_out: bool
    multi_label: bool
    stuff: int
    scale: float
    notes: Sequence[Note]
    listing: Listing

    def images(self) -> Iterator[tuple[Split, Image]]:
        """All images with their split."""
        for split, images in self.splits.items():
            for image in images:
                yield split, image

    def name_of(self, image: Image) -> str:
        """The path of an image below the innermost common folder of all images, with ``/``."""
        return self.listing.name_of(ImageRecord(image.path))

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.classes)}

    def number_of(self, label: str) -> int:
        """The number of a class, from 0."""
        return self._numbers[label]

    def class_map(self, image: Image) -> np.ndarray:
        """For segmentation: the class of each pixel (H, W), uint8; 255 for unlabeled pixels."""
        instances = [_instance(obj) for obj in image.objects]
        record = ImageRecord(image.path, size=image.size, instances=instances, mask=image.mask)
        return class_map(self.listing, record)

    def segments(self, image: Image) -> np.ndarray:
        """For panoptic data: the number of the segment of each pixel (H, W), int32; 0 is none."""
        assert image.mask is not None
        return numbers_in(image.mask)

    def depth(self, image: Image) -> np.ndarray:
        """The depth of each pixel (H, W) in meters, float32; 0 where it is unknown."""
        assert image.mask is not None
        return read_depth(image.mask, self.scale)


def object_mask(obj: Object, size: tuple[int, int]) -> np.ndarray:
    """The mask (H, W), bool, of an object with a segmentation, in an image of this size (W, H).

    For polygons, these are the pixels whose center is inside, see
    :func:`~anyfolder.readers.polygon_masks.draw_polygon`.
    """
    if isinstance(obj.segmentation, Mapping):
        return mask_of(obj.segmentation['counts'], size)
    mask = np.zeros(size[::-1], bool)
    for polygon in obj.segmentation or ():
        draw_polygon(mask, polygon, value=True)
    return mask


def _instance(obj: Object) -> Instance:
    """An object in the readers' own form."""
    segmentation: Any = obj.segmentation  # sequences and mappings there are lists and dicts
    return Instance(obj.label, obj.box, segmentation, obj.crowd, obj.area)


def as_dataset(task: str, source: Path, listing: Listing, scale: float) -> Dataset:
    """Build the dataset of a listing, see :class:`Dataset` for the other arguments."""

    def as_image(record: ImageRecord) -> Image:
        objects = []
        for instance in record.instances:
            left, top, width, height = map(float, instance.box)
            objects.append(
                Object(
                    label=instance.name,
                    box=(left, top, width, height),
                    segmentation=instance.segmentation,
                    area=float(instance.area),
                    crowd=instance.crowd,
                    segment=getattr(instance, 'number', 0),  # only a Segment has one
                )
            )
        size, labels = record.size, record.labels
        return Image(record.path, size, record.bands or 0, labels, tuple(objects), record.mask)

    return Dataset(
        task=task,
        format=listing.form,
        source=source,
        folder=listing.folder,
        classes=listing.classes,
        splits={split: [*map(as_image, part)] for split, part in listing.parts.items()},
        held_out=listing.held_out,
        multi_label=listing.multi_label,
        stuff=listing.stuff or 0,
        scale=scale,
        notes=[Note(*row) for row in listing.findings.rows()],
        listing=listing,
    )
