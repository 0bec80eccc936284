"""LabelMe: a JSON file for each image with polygons and rectangles."""

import math
from base64 import b64decode
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path, PureWindowsPath
from typing import Any

import cv2

from anyfolder.pixels.images import decode

from .findings import Findings
from .image_tree import Tree, stated_size
from .records import (
    Annotations,
    Instance,
    Json,
    is_ignored,
    reading,
)

CORNERS = 32  # of the polygon of a circle


def is_labelme(content: Any) -> bool:
    """True if this is the content of a file of LabelMe."""
    return isinstance(content, Mapping) and isinstance(content.get('shapes'), list)


def read_labelme(tree: Tree, files: Mapping[Path, Any], findings: Findings) -> Annotations:
    """The images of LabelMe files. Shapes with the same label and ``group_id`` are one object.

    Raises:
        InputError: if a file is not complete.
    """
    records = []
    names = {file: _names_of(tree, file, content, findings) for file, content in files.items()}
    pairs = tree.index.pair({file: found for file, found in names.items() if found}, findings)
    for file in pairs.lost:
        what = 'files of LabelMe have no image of their name'
        findings.reject(what, 'add the images', str(file))
    for file, path in pairs.image_of.items():
        content = files[file]
        stated = stated_size(content.get('imageWidth'), content.get('imageHeight'))
        groups: dict[Any, list[Sequence[float]]] = {}
        difficult = set()
        with reading(file, 'a shape', 'LabelMe'):
            for i, shape in enumerate(content['shapes']):
                polygons = _polygons(shape)
                if shape.get('shape_type') == 'rotation':
                    what = 'boxes with a rotation, taken as the upright rectangle around them'
                    findings.warn(what, f'{shape.get("direction")} radians of {file}')
                if not polygons:
                    findings.warn(f'shapes left out, {shape.get("shape_type")}', file)
                    continue
                group = shape.get('group_id')
                key = str(shape['label']).strip(), f'shape {i}' if group is None else group
                groups.setdefault(key, []).extend(polygons)
                if is_ignored(shape):
                    difficult.add(key)
        found = [
            Instance.of_polygons(key[0], polygons, str(file), key in difficult)
            for key, polygons in groups.items()
        ]
        records.append(tree.record(path, file, stated=stated, instances=found))
    return Annotations(records)


def _names_of(tree: Tree, file: Path, content: Json, findings: Findings) -> list[str]:
    """The names that the image may have; none where two images are meant."""
    name = str(content.get('imagePath') or file.stem)
    said = tree.index.match(PureWindowsPath(name).name, file)
    if len(said) != 1:  # its folders may be those of another machine
        said = tree.index.match(name, file)
    own = tree.index.match(file.stem, file)
    if len(said) == len(own) == 1 and said != own:
        findings.reject(
            'files of LabelMe have the name of one image, and the imagePath of another',
            'rename them, or correct imagePath',
            f'{file} with {name!r}',
        )
        return []
    return [file.stem if own else name if len(said) == 1 else PureWindowsPath(name).name]


def _polygons(shape: Json) -> list[list[float]]:
    """The polygons ``[x, y, x, y, ...]`` of a shape, none of one without an area."""
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
    """The polygons of a mask, a PNG in base64 with its left upper corner there."""
    if not (content := b64decode(encoded)):
        raise ValueError('its mask is not a PNG in base64')
    pixels = decode(content, 'grayscale')
    found, _ = cv2.findContours(pixels, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
    return [(part[:, 0] + corner).flatten().tolist() for part in found if len(part) > 2]
