"""V7 Darwin, version 2: a JSON file for each image with boxes and polygons."""

from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from ..records import Instance
from .image_lists import NO_BOX
from .json_values import Json, stated_size, text_of
from .parsed import Fault, Parsed, ParsedImage


def is_darwin(content: Any, file: Path) -> bool:
    """True if this is the content of a Darwin file about an image."""
    match content:
        case {'item': {'name': str(), 'slots': [{}, *_]}, 'annotations': [*_]}:
            return True
    return False


def darwin_image(content: Json) -> str:
    """The name of the image of a file."""
    return str(content['item']['name'])


def parse_darwin(content: Json, file: Path) -> Parsed:
    """The image of a file. Tags, lines and keypoints have no box and are left out.

    Raises:
        KeyError, TypeError, ValueError: if an annotation is incomplete.
    """
    objects, faults = list[Instance](), list[Fault]()
    for annotation in content['annotations']:
        name, box = text_of(annotation['name']), annotation.get('bounding_box')
        if paths := _paths(annotation.get('polygon') or {}):
            objects.append(Instance.of_polygons(name, paths, str(file)))
        elif box:
            numbers = [box[key] for key in 'xywh']
            objects.append(Instance(name, numbers, origin=str(file)))
        else:
            faults.append(Fault(NO_BOX, f'{name} of {file}'))
    slot = content['item']['slots'][0]
    stated = stated_size(slot.get('width'), slot.get('height'))
    return Parsed([ParsedImage(darwin_image(content), objects, stated)], faults=faults)


def _paths(polygon: Json) -> list[list[float]]:
    """The polygons ``[x, y, x, y, ...]`` of an annotation."""
    paths: Sequence[Sequence[Mapping[str, float]]] = polygon.get('paths') or []
    return [[*chain.from_iterable((point['x'], point['y']) for point in path)] for path in paths]
