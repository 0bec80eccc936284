"""Lists of images in JSON, each with its objects: CreateML, BDD100K and Hugging Face."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..records import Instance
from ..splits import split_of
from .json_values import Json, first_of, is_ignored, stated_size, text_of
from .parsed import Fault, Parsed, ParsedImage

# Keys of an image for its name, and of an object for its class.
IMAGE_KEYS = ('image', 'imagefilename', 'file_name', 'name')
CLASS_KEYS = ('label', 'category', 'categories', 'class')
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
        name = str(first_of(entry, IMAGE_KEYS))
        origin = f'{name} in {file}'
        objects = objects_of(entry, key)
        instances = [_instance(item, origin) for item in objects if _has_box(item)]
        if len(instances) < len(objects):
            faults.append(Fault(NO_BOX, origin))
        stated = stated_size(entry.get('width'), entry.get('height'))
        images.append(ParsedImage(name, instances, stated, split_of(str(entry.get('split')))))
    return Parsed(images, faults=faults)


def _entries(content: Any) -> Sequence[Json]:
    """The images of a list, which newer BDD100K files call frames."""
    entries = content.get('frames') if isinstance(content, Mapping) else content
    return _mappings_in(entries)


def objects_of(entry: Json, key: str) -> Sequence[Json]:
    """The objects of an image. Hugging Face stores a list per property instead of per object.

    Raises:
        ValueError: if these lists have different lengths.
    """
    objects = entry.get(key) or []
    if isinstance(objects, Mapping):
        columns = {name: values for name, values in objects.items() if isinstance(values, list)}
        rows = zip(*columns.values(), strict=True)
        objects = [dict(zip(columns, row, strict=True)) for row in rows]
    return _mappings_in(objects)


def _mappings_in(value: Any) -> list[Json]:
    """The mappings in a list; empty if the value is not a list."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


# Key of a box -> its form (`BOX_FORMS`), and the keys of its numbers; without these, it is a list.
BOXES = {
    'coordinates': ('center', ('x', 'y', 'width', 'height')),
    'box2d': ('xyxy', ('x1', 'y1', 'x2', 'y2')),
    'bbox': ('xywh', ()),
}


def _has_box(item: Json) -> bool:
    return any(map(item.get, BOXES))


def _instance(item: Json, origin: str) -> Instance:
    """An object, which has a box."""
    key = next(key for key in BOXES if item.get(key))
    (form, keys), written = BOXES[key], item[key]
    box: Any = [float(written[name]) for name in keys] if keys else written
    name = text_of(first_of(item, CLASS_KEYS))
    return Instance(name, box, crowd=is_ignored(item), origin=origin, form=form)
