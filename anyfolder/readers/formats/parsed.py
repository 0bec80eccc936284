"""The content of an annotation file, before its images are looked up."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ..records import Instance
from ..splits import Split


@dataclass(slots=True)
class ParsedImage:
    """An image as an annotation file describes it.

    Attributes:
        name: the name as written, maybe with folders. Empty if the annotation file is named after
            its image.
        objects: the objects in the image, each in the form of the file.
        stated_size: width and height by the file, ``(0, 0)`` if not stated.
        split: the split of this image, if the file states one.
    """

    name: str
    objects: list[Instance] = field(default_factory=list)
    stated_size: tuple[float, float] = (0, 0)
    split: Split | None = None


class Fault(NamedTuple):
    """An error in a file, or something in it that is left out.

    Attributes:
        what: a description in the plural, which covers all such items:
            ``'parts of objects left out'``.
        example: one of the items, by its position and value.
        remedy: the remedy for an error. Empty if the item is only left out.
    """

    what: str
    example: str
    remedy: str = ''


@dataclass
class Parsed:
    """The content of an annotation file.

    Attributes:
        images: the images.
        names: the class names, if the file gives them an order.
        faults: errors, and what is left out.
    """

    images: Sequence[ParsedImage]
    names: Sequence[str] = ()
    faults: Sequence[Fault] = ()
