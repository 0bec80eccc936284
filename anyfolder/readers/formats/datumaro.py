"""Datumaro's own JSON: items with annotations, whose classes are numbers of names in the file."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..records import Instance
from .image_lists import NO_BOX
from .json_values import Json, is_ignored, stated_size, text_of
from .parsed import Fault, Parsed, ParsedImage


def is_datumaro(content: Any, file: Path) -> bool:
    """True if this is the content of a Datumaro file with a box or a polygon."""
    match content:
        case {'items': [*items], 'categories': {'label': {'labels': [*_]}}}:
            return any(_is_shape(one) for item in items for one in item['annotations'])
    return False


def parse_datumaro(content: Json, file: Path) -> Parsed:
    """The images of a file. Keypoints and open lines also have points, but are not polygons.

    Raises:
        KeyError, TypeError, ValueError, IndexError: if an image or an object is incomplete.
    """
    names = [text_of(label['name']) for label in content['categories']['label']['labels']]
    images, faults = [], []
    for item in content['items']:
        image = item.get('image', {})
        height, width = image.get('size', (0, 0))
        name = str(image.get('path') or item['id'])
        origin = f'{name} in {file}'
        objects = [one for one in item['annotations'] if one.get('label_id') is not None]
        found = [_instance(one, names, origin) for one in objects if _is_shape(one)]
        if len(found) < len(objects):
            faults.append(Fault(NO_BOX, origin))
        images.append(ParsedImage(name, found, stated_size(width, height)))
    return Parsed(images, faults=faults)


def _is_shape(one: Json) -> bool:
    """True for an object with a class and a box or a polygon."""
    has_shape = one.get('bbox') or (one.get('type') == 'polygon' and one.get('points'))
    return bool(has_shape) and one.get('label_id') is not None


def _instance(one: Json, names: Sequence[str], origin: str) -> Instance:
    name, crowd = names[one['label_id']], is_ignored(one)
    if one.get('type') == 'polygon':
        return Instance.of_polygons(name, [one['points']], origin, crowd)
    return Instance(name, one['bbox'], crowd=crowd, origin=origin)
