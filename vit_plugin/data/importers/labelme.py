"""LabelMe: a JSON file for each image with outlines and rectangles."""

import math
from base64 import b64decode
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import cv2

from vit_plugin.errors import ConfigError, first_line
from vit_plugin.files.images import decode

from .findings import Findings
from .photos import Tree, stated_size
from .records import Annotations, Instance, Photo

CORNERS = 32  # of the outline of a circle


def is_labelme(content: Any) -> bool:
    """True if this is the content of a file of LabelMe."""
    return isinstance(content, Mapping) and isinstance(content.get('shapes'), list)


def read_labelme(tree: Tree, files: Mapping[Path, Any], findings: Findings) -> Annotations:
    """The photographs of LabelMe files. Shapes with the same label and ``group_id`` are one object.

    Raises:
        ConfigError: if a file is not complete.
    """
    photos = []
    for file, content in files.items():
        name = content.get('imagePath') or ''
        path = (tree.find(name, file) if name else None) or tree.with_stem(file.stem, file)
        if path is None:
            findings.refuse(
                'files of LabelMe have no image of their name', 'add the images', str(file)
            )
            continue
        stated = stated_size(content.get('imageWidth'), content.get('imageHeight'))
        groups: dict[Any, list[Sequence[float]]] = {}
        try:
            for i, shape in enumerate(content['shapes']):
                outlines = _outlines(shape)
                if not outlines:
                    findings.note(f'shapes left out, {shape.get("shape_type")}', file)
                    continue
                group = shape.get('group_id')
                key = str(shape['label']).strip(), f'shape {i}' if group is None else group
                groups.setdefault(key, []).extend(outlines)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ConfigError(
                f'--data: {str(file)!r} has a shape that is not complete in the format of LabelMe '
                f'({type(error).__name__}: {first_line(error)}); correct it.'
            ) from error
        found = [
            Instance.of_polygons(label, outlines, str(file))
            for (label, _), outlines in groups.items()
        ]
        photos.append(
            Photo(
                path,
                tree.split(file) or tree.split(path),
                stated=stated,
                instances=found,
                origin=str(file),
            )
        )
    return Annotations(photos)


def _outlines(shape: Mapping[str, Any]) -> list[list[float]]:
    """The outlines ``[x, y, x, y, ...]`` of a shape, none of one without an area."""
    points = [(float(x), float(y)) for x, y in shape['points']]
    kind = shape.get('shape_type') or 'polygon'
    if kind == 'mask' and shape.get('mask'):
        return _around(shape['mask'], points[0])
    if kind in ('rectangle', 'mask') and len(points) == 2:
        (left, top), (right, bottom) = points
        points = [(left, top), (right, top), (right, bottom), (left, bottom)]
    elif kind == 'circle' and len(points) == 2:
        (x, y), edge = points
        radius = math.dist((x, y), edge)
        angles = [2 * math.pi * i / CORNERS for i in range(CORNERS)]
        points = [(x + radius * math.cos(angle), y + radius * math.sin(angle)) for angle in angles]
    has_area = len(points) > 2 and kind not in ('line', 'linestrip', 'points')
    return [list(chain(*points))] if has_area else []


def _around(encoded: str, corner: tuple[float, float]) -> list[list[float]]:
    """The outlines of a mask, a PNG in base64 with its left upper corner there."""
    pixels = decode(b64decode(encoded), 'grayscale')
    found, _ = cv2.findContours(pixels, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
    return [(part[:, 0] + corner).flatten().tolist() for part in found if len(part) > 2]
