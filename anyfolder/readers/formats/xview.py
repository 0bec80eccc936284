"""xView: GeoJSON whose features have the box of an object in pixels of an image."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..records import Instance
from .json_values import Json, key_of, text_of
from .parsed import Parsed, ParsedImage


def is_xview(content: Any, file: Path) -> bool:
    """True if the features of GeoJSON have boxes in pixels."""
    match content:
        case {'features': [{'properties': {'bounds_imcoords': _, 'image_id': _}}, *_]}:
            return True
    return False


def parse_xview(content: Json, file: Path) -> Parsed:
    """The images of a file. Classes are numbers.

    Raises:
        KeyError, TypeError, AttributeError: if a feature is incomplete.
    """
    images: dict[str, ParsedImage] = {}
    for number, feature in enumerate(content['features'], 1):
        properties: Mapping[str, Any] = feature['properties']
        name = text_of(properties['image_id'])
        box = properties['bounds_imcoords'].split(',')
        instance = Instance(
            key_of(properties['type_id']), box, origin=f'feature {number} of {file}', form='xyxy'
        )
        images.setdefault(name, ParsedImage(name)).objects.append(instance)
    return Parsed([*images.values()])
