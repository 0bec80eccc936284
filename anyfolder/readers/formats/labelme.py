"""LabelMe: a JSON file for each image with polygons, rectangles, circles and masks."""

import math
from base64 import b64decode
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from ..geometry import circle
from ..records import Instance
from .json_values import Json, is_ignored, stated_size, text_of
from .outlines import outlines_of
from .parsed import Fault, Parsed, ParsedImage


def is_labelme(content: Any, file: Path) -> bool:
    """True if this is the content of a LabelMe file."""
    return isinstance(content, Mapping) and isinstance(content.get('shapes'), list)


def labelme_image(content: Json) -> str:
    """The name of the image of a file, maybe with folders of another machine; empty if missing."""
    return str(content.get('imagePath') or '')


def parse_labelme(content: Json, file: Path) -> Parsed:
    """The image of a file. Shapes with the same label and ``group_id`` are one object.

    Raises:
        KeyError, TypeError, ValueError, AttributeError: if a shape is incomplete.
    """
    groups: dict[Any, list[Sequence[float]]] = {}
    difficult, faults = set(), list[Fault]()
    for i, shape in enumerate(content['shapes']):
        polygons = _polygons(shape)
        if shape.get('shape_type') == 'rotation':
            # Its four corners are read as a polygon, whose upright rectangle becomes the box.
            what = 'rotated boxes, replaced by the upright rectangle around them'
            faults.append(Fault(what, f'{shape.get("direction")} radians of {file}'))
        if not polygons:
            faults.append(Fault(f'shapes left out, {shape.get("shape_type")}', str(file)))
            continue
        group = shape.get('group_id')
        key = text_of(shape['label']), f'shape {i}' if group is None else group
        groups.setdefault(key, []).extend(polygons)
        if is_ignored(shape):
            difficult.add(key)
    objects = [
        Instance.of_polygons(key[0], polygons, str(file), key in difficult)
        for key, polygons in groups.items()
    ]
    stated = stated_size(content.get('imageWidth'), content.get('imageHeight'))
    return Parsed([ParsedImage(labelme_image(content), objects, stated)], faults=faults)


def _polygons(shape: Json) -> list[list[float]]:
    """The polygons ``[x, y, x, y, ...]`` of a shape; empty for a shape without an area."""
    points = [(float(x), float(y)) for x, y in shape['points']]
    shape_type = shape.get('shape_type') or 'polygon'
    if shape_type == 'mask' and shape.get('mask'):
        if not (content := b64decode(shape['mask'])):
            raise ValueError('its mask is not a PNG in base64')
        return outlines_of(content, points[0])
    if shape_type == 'circle' and len(points) == 2:
        center, on_circle = points
        radius = math.dist(center, on_circle)
        return [circle(center, (radius, radius))]
    if shape_type in ('rectangle', 'mask') and len(points) == 2:
        (left, top), (right, bottom) = points
        points = [(left, top), (right, top), (right, bottom), (left, bottom)]
    has_area = len(points) > 2 and shape_type not in ('line', 'linestrip', 'points')
    return [list(chain(*points))] if has_area else []
