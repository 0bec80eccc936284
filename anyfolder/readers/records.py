"""What readers of annotations return: images, and the objects in them."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from anyfolder.errors import named_line, rejecting

from .polygons import box_around
from .splits import Split

Json = Mapping[str, Any]  # an object of JSON
IGNORED = (
    'iscrowd',
    'is_crowd',
    'crowd',
    'ignore',
    'difficult',
)  # keys of what is neither trained on nor counted
NESTED = {'attributes', 'flags', 'extra', 'properties', 'other_data'}  # of an object itself


@dataclass(slots=True)
class Instance:
    """An object.

    Attributes:
        name: its class. Nothing for a region to be ignored, whatever its class.
        box: left, top, width and height in pixels of the image as it is seen.
        segmentation: COCO's polygons ``[[x, y, x, y, ...], ...]``, or its run lengths as a dict.
            None: box alone.
        crowd: whether it is a group of objects, difficult or to be ignored, so that it is neither
            trained on nor counted.
        degrees: by which the box is turned around its middle.
        area: in pixels, as far as it is known.
        origin: where it is said, for messages.
    """

    name: str
    box: Sequence[Any]
    segmentation: list[list[float]] | dict[str, Any] | None = None
    crowd: bool = False
    area: Any = None
    degrees: Any = None
    origin: str = ''

    @classmethod
    def of_polygons(
        cls, name: str, polygons: Sequence[Sequence[float]], origin: str = '', crowd: bool = False
    ) -> 'Instance':
        """An object from its polygons, each ``[x, y, x, y, ...]``."""
        points = [list(polygon) for polygon in polygons]
        return cls(name, box_around(polygons), points, crowd, origin=origin)


@dataclass(slots=True)
class ImageRecord:
    """An image and what is said of it.

    Attributes:
        path: the file.
        split: the part that its data set puts it into, or None.
        size: width and height in pixels as it is seen; ``(0, 0)`` before the file was read.
        bands: the number of bands, 0 of a photograph; None before the file was read.
        digest: of the content, of a file that was decoded.
        stated: width and height by the annotation, ``(0, 0)`` where it says nothing.
        labels: names of its classes.
        instances: objects in it.
        mask: the file with the class, or the depth, of each pixel, or None.
        origin: what says it, for messages.
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

    @property
    def names(self) -> list[str]:
        """Its classes, and those of the objects in it."""
        return [*self.labels, *(found.name for found in self.instances if found.name)]


Records = list[ImageRecord]
Parts = dict[Split, Records]


def text_of(value: Any) -> str:
    """A name in JSON, empty for null."""
    return '' if value is None else str(value).strip()


def number_of(value: Any) -> float:
    """A number or the text of one, else not a number."""
    if type(value) in (float, int):
        return float(value)
    with suppress(TypeError, ValueError):
        return math.nan if isinstance(value, bool) else float(value)
    return math.nan


def is_yes(value: Any) -> bool:
    """True for 1, true and yes, as numbers or text."""
    return str(value).strip().casefold() in ('1', '1.0', 'true', 'yes')


def properties_of(found: Mapping[Any, Any]) -> Iterator[tuple[str, Any]]:
    """The keys and values of an object, and of what is nested in it such as attributes."""
    for key, value in found.items():
        if isinstance(value, Mapping):
            yield from properties_of(value) if str(key).casefold() in NESTED else ()
        else:
            yield str(key).casefold(), value


def is_ignored(found: Mapping[Any, Any]) -> bool:
    """True if an object is marked as crowd, ignored or difficult."""
    return any(key in IGNORED and is_yes(value) for key, value in properties_of(found))


def reading(file: Path, what: str, format: str) -> AbstractContextManager[None]:
    """Turn an error over missing or wrong values of a file into a ``InputError`` of a sentence."""
    return rejecting(
        f'--data: {str(file)!r} has {what} that is not complete in the format of {format}',
        'correct it',
        (KeyError, TypeError, ValueError, AttributeError),
        named_line,
    )


class Annotations(NamedTuple):
    """Result of a reader.

    Attributes:
        records: the images.
        names: of the classes, if the form gives them an order.
        used: further files that were read.
        is_divided: whether lists of the form itself say the splits, so that no others are read.
    """

    records: Records
    names: Sequence[str] = ()
    used: Sequence[Path] = ()
    is_divided: bool = False
