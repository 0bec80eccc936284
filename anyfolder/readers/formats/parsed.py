"""The content of an annotation file, before its images are looked up."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ..records import Instance
from ..splits import Split


@dataclass(slots=True)
class ParsedImage:
    """An image with its content in an annotation file.

    Attributes:
        name: as written, maybe with folders. Nothing where the name of the file tells the image.
        objects: in it, each in the form that it is written in.
        stated: its width and height by the file, ``(0, 0)`` where it says nothing.
        split: the split of this image, if the file states one.
    """

    name: str
    objects: list[Instance] = field(default_factory=list)
    stated: tuple[float, float] = (0, 0)
    split: Split | None = None


class Fault(NamedTuple):
    """Something that is wrong in a file, or left out of it.

    Attributes:
        what: in the plural: ``'parts of objects left out'``.
        example: where, and the value.
        remedy: what to do about what is wrong. Nothing: it is only left out.
    """

    what: str
    example: str
    remedy: str = ''


@dataclass
class Parsed:
    """The content of an annotation file.

    Attributes:
        images: that it is about.
        names: of the classes, if the file gives them an order.
        faults: what is wrong or left out.
    """

    images: Sequence[ParsedImage]
    names: Sequence[str] = ()
    faults: Sequence[Fault] = ()
