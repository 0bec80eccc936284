"""Datumaro's own JSON: items with annotations, whose classes are indices of a list of names."""

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
    """The images of a file, and the names of its labels in order.

    Keypoints, open lines and shapes without a class are left out with a fault.

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
        noted = [one for one in item['annotations'] if _has_class(one) or _has_outline(one)]
        objects = [_instance(one, names, origin) for one in noted if _is_shape(one)]
        if len(objects) < len(noted):
            faults.append(Fault(NO_BOX, origin))
        images.append(ParsedImage(name, objects, stated_size(width, height)))
    return Parsed(images, names, faults)


def _is_shape(annotation: Json) -> bool:
    """True for an object with a class and a box or a polygon."""
    return _has_class(annotation) and _has_outline(annotation)


def _has_class(annotation: Json) -> bool:
    return annotation.get('label_id') is not None


def _has_outline(annotation: Json) -> bool:
    """True for a box or a polygon.

    Keypoints and open lines also have points, but are of other types.
    """
    is_polygon = annotation.get('type') == 'polygon' and annotation.get('points')
    return bool(annotation.get('bbox') or is_polygon)


def _instance(annotation: Json, names: Sequence[str], origin: str) -> Instance:
    if annotation['label_id'] < 0:  # it would count from the last name
        raise IndexError(f'the label_id {annotation["label_id"]} is negative')
    name, crowd = names[annotation['label_id']], is_ignored(annotation)
    if annotation.get('type') == 'polygon':
        return Instance.of_polygons(name, [annotation['points']], origin, crowd)
    return Instance(name, annotation['bbox'], crowd=crowd, origin=origin)
