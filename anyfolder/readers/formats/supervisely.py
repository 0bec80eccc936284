"""Supervisely: ``ann/NAME.jpg.json``, a file for each image with figures."""

import zlib
from base64 import b64decode
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from anyfolder.limits import check_limit, limit

from ..records import Instance
from .image_lists import NO_BOX
from .json_values import Json, stated_size, text_of
from .outlines import outlines_of
from .parsed import Fault, Parsed, ParsedImage

UNPACKED_LIMIT = 'times the bytes of its file, unpacked'  # a key of LIMITS


def is_supervisely(content: Any, file: Path) -> bool:
    """True if this is the content of a file with figures, or of an image without any."""
    match content:
        case {'size': {'height': _, 'width': _}, 'objects': [*objects]}:
            return all(isinstance(item, Mapping) and 'classTitle' in item for item in objects)
    return False


def parse_supervisely(content: Json, file: Path) -> Parsed:
    """The image of a file, with rectangles, polygons and bitmaps.

    Raises:
        KeyError, TypeError, ValueError: if a figure is incomplete.
        LimitError: if a bitmap unpacks to far more than its size.
    """
    objects, faults = list[Instance](), list[Fault]()
    for figure in content['objects']:
        name, shape = text_of(figure['classTitle']), figure.get('geometryType')
        points = figure.get('points') or {}
        if shape == 'rectangle':
            corners = _flat(points['exterior'])
            objects.append(Instance(name, corners, origin=str(file), form='xyxy'))
            continue
        polygons = []
        if shape == 'polygon':
            polygons = [_flat(points['exterior'])]
            if points.get('interior'):
                faults.append(Fault('holes of polygons filled', str(file)))
        elif shape == 'bitmap':
            polygons = _bitmap_polygons(figure['bitmap'], file)
        if polygons:
            objects.append(Instance.of_polygons(name, polygons, str(file)))
        else:
            faults.append(Fault(NO_BOX, f'{shape} of {file}'))
    stated = stated_size(content['size']['width'], content['size']['height'])
    return Parsed([ParsedImage('', objects, stated)], faults=faults)


def _flat(points: Sequence[Sequence[float]]) -> list[float]:
    return [float(value) for value in chain(*points)]


def _bitmap_polygons(bitmap: Json, file: Path) -> list[list[float]]:
    """The polygons of a bitmap, a compressed PNG in base64.

    Raises:
        LimitError: if it unpacks to far more than its size.
        ValueError: if it cannot be unpacked, or is not an image.
    """
    packed, unpacker = b64decode(bitmap['data']), zlib.decompressobj()
    try:
        content = unpacker.decompress(packed, int(limit(UNPACKED_LIMIT) * len(packed)))
    except zlib.error as error:
        raise ValueError(f'a bitmap cannot be unpacked ({error})') from None
    if unpacker.unconsumed_tail:  # more than the limit, so this raises an error
        check_limit(file, UNPACKED_LIMIT, limit(UNPACKED_LIMIT) + 1)
    return outlines_of(content, bitmap['origin'])
