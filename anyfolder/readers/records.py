"""The record of an image: its split, size and labels, as far as they are known.

A reader makes one for each image from what its files say, :mod:`.build_listing` completes and
checks it against the pixels, and a :class:`~.listing.Listing` has the final ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .splits import Split


@dataclass(slots=True)
class Instance:
    """An object. As a file has it, its box is of any form; in a listing it is in pixels.

    Attributes:
        name: its class. Nothing for a region to be ignored, whatever its class.
        box: left, top, width and height in pixels of the image as it is seen. As a file has it,
            the numbers of its form, or nothing where there are only polygons.
        segmentation: COCO's polygons ``[[x, y, x, y, ...], ...]``, or its run lengths as a dict.
            None: only a box.
        crowd: whether it is a group of objects, difficult or to be ignored, so that it is neither
            trained on nor counted.
        area: in pixels, as far as it is known.
        degrees: by which the box is turned around its middle.
        origin: the place where it is stated, for messages.
        form: what the numbers of the box are, a key of :data:`~.geometry.BOX_FORMS`.
        relative: whether box and polygons are shares of the width and height.
        from_1: whether pixels are counted from 1, as in Pascal VOC, unless a corner is 0.
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
        split: that its data set assigns it to, or None.
        group: what it has in common with images that must be in the same split, such as a patient.
        size: width and height in pixels as it is seen; ``(0, 0)`` before the file was read.
        bands: the number of bands, 0 of a photograph; None before the file was read.
        digest: of the content, of a file that was decoded.
        stated: width and height by the annotation, ``(0, 0)`` where it states none.
        labels: names of its classes.
        instances: objects in it.
        mask: the file with the class, or the depth, of each pixel, or None.
        origin: the file that states it, for messages.
    """

    path: Path
    split: Split | None = None
    size: tuple[int, int] = (0, 0)
    bands: int | None = None
    digest: str = ''
    stated: tuple[float, float] = (0, 0)
    labels: tuple[str, ...] = ()
    instances: list[Instance] = field(default_factory=list)
    mask: Path | None = None
    origin: str = ''
    group: str = ''

    @property
    def names(self) -> list[str]:
        """Its classes, and those of the objects in it."""
        return [*self.labels, *(found.name for found in self.instances if found.name)]


Records = list[ImageRecord]
Parts = dict[Split, Records]
