"""Lists of images in JSON, each with its objects: CreateML, BDD100K and Hugging Face."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..records import Instance
from ..splits import split_of
from .json_values import Json, first_of, is_ignored, stated_size, text_of
from .parsed import Fault, Parsed, ParsedImage

IMAGES = ('image', 'imagefilename', 'file_name', 'name')
CLASSES = ('label', 'category', 'categories', 'class')
NO_BOX = 'objects without a box left out'


def is_list(content: Any, file: Path, key: str) -> bool:
    """True if images in a list have objects with boxes under this key.

    Raises:
        ValueError: if the numbers of an image's objects and of their properties differ.
    """
    return any(any(map(_has_box, objects_of(entry, key))) for entry in _entries(content))


def parse_list(content: Any, file: Path, key: str) -> Parsed:
    """The images of a list with their objects under this key.

    Raises:
        KeyError, TypeError, ValueError: if an image or an object is incomplete.
    """
    images, faults = [], []
    for entry in _entries(content):
        name = str(first_of(entry, IMAGES))
        origin = f'{name} in {file}'
        objects = objects_of(entry, key)
        found = [_instance(one, origin) for one in objects if _has_box(one)]
        if len(found) < len(objects):
            faults.append(Fault(NO_BOX, origin))
        stated = stated_size(entry.get('width'), entry.get('height'))
        images.append(ParsedImage(name, found, stated, split_of(str(entry.get('split')))))
    return Parsed(images, faults=faults)


def _entries(content: Any) -> Sequence[Json]:
    """The images of a list, which newer BDD100K files call frames."""
    found = content.get('frames') if isinstance(content, Mapping) else content
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []


def objects_of(entry: Json, key: str) -> Sequence[Json]:
    """The objects of an image. Hugging Face stores a list per property instead of per object.

    Raises:
        ValueError: if these lists have different lengths.
    """
    found = entry.get(key) or []
    if isinstance(found, Mapping):
        columns = {name: values for name, values in found.items() if isinstance(values, list)}
        rows = zip(*columns.values(), strict=True)
        found = [dict(zip(columns, row, strict=True)) for row in rows]
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []


# The form of a box by its key, and the keys of its numbers; without keys it is a list of four.
BOXES = {
    'coordinates': ('center', ('x', 'y', 'width', 'height')),
    'box2d': ('xyxy', ('x1', 'y1', 'x2', 'y2')),
    'bbox': ('xywh', ()),
}


def _has_box(one: Json) -> bool:
    return any(map(one.get, BOXES))


def _instance(one: Json, origin: str) -> Instance:
    key = next(filter(one.get, BOXES))
    (form, keys), written = BOXES[key], one[key]
    box: Any = [float(written[name]) for name in keys] if keys else written
    name = text_of(first_of(one, CLASSES))
    return Instance(name, box, crowd=is_ignored(one), origin=origin, form=form)
