"""The record of an image: its split, size and labels, as far as they are known.

A reader creates a record for each image from the files, :mod:`.build_listing` completes and checks
it against the pixels, and a :class:`~.listing.Listing` has the final records.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .splits import Split


@dataclass(slots=True)
class Instance:
    """An object. From a file, its box can have any form; in a listing it is in pixels.

    Attributes:
        name: the class. Empty for a region to be ignored, whatever its class.
        box: left, top, width and height in pixels of the image as displayed. From a file, the
            numbers of its form, or empty if there are only polygons.
        segmentation: COCO's polygons ``[[x, y, x, y, ...], ...]``, or its run lengths as a dict.
            None: only a box.
        crowd: whether it is a group of objects, difficult or to be ignored: neither trained on nor
            counted.
        area: the area in pixels, if known.
        degrees: the rotation of the box around its center.
        origin: the place of the annotation, for messages.
        form: the meaning of the four numbers, a key of :data:`~.geometry.BOX_FORMS`.
        relative: whether box and polygons are fractions of the width and height.
        from_1: whether pixels are counted from 1, as in Pascal VOC; see :mod:`.boxes_in_pixels`.
    """

    name: str
    box: Sequence[Any]
    segmentation: list[list[float]] | dict[str, Any] | None = None
    crowd: bool = False
    area: Any = None
    degrees: Any = None
    origin: str = ''
    form: str = 'xywh'
    relative: bool = False
    from_1: bool = False

    @classmethod
    def of_polygons(
        cls, name: str, polygons: Sequence[Sequence[float]], origin: str = '', crowd: bool = False
    ) -> 'Instance':
        """An object from its polygons, each ``[x, y, x, y, ...]``."""
        return cls(name, (), [list(polygon) for polygon in polygons], crowd, origin=origin)


@dataclass(slots=True)
class ImageRecord:
    """An image and its annotations.

    Attributes:
        path: the file.
        split: the split in its data set, or None.
        group: a value shared by images that must stay in one split, such as a patient.
        size: width and height in pixels as displayed; ``(0, 0)`` before the file was read.
        bands: the number of bands, 0 for a photograph; None before the file was read.
        digest: a digest of the content, if the file was decoded.
        stated_size: width and height by the annotation, ``(0, 0)`` if not stated.
        labels: the names of its classes, for classification; for masks, the classes in them.
        instances: the objects in it.
        mask: the file with the class, or the depth, of each pixel, or None.
        origin: the file with the annotation, for messages.
    """

    path: Path
    split: Split | None = None
    size: tuple[int, int] = (0, 0)
    bands: int | None = None
    digest: str = ''
    stated_size: tuple[float, float] = (0, 0)
    labels: tuple[str, ...] = ()
    instances: list[Instance] = field(default_factory=list)
    mask: Path | None = None
    origin: str = ''
    group: str = ''

    @property
    def names(self) -> list[str]:
        """The classes of the image, and those of the objects in it."""
        return [*self.labels, *(instance.name for instance in self.instances if instance.name)]


Records = list[ImageRecord]
Parts = dict[Split, Records]
