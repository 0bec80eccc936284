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

UNPACKED = 'times the bytes of its file, unpacked'


def is_supervisely(content: Any, file: Path) -> bool:
    """True if this is the content of a file with figures, or of an image without any."""
    match content:
        case {'size': {'height': _, 'width': _}, 'objects': [*objects]}:
            return all(isinstance(one, Mapping) and 'classTitle' in one for one in objects)
    return False


def parse_supervisely(content: Json, file: Path) -> Parsed:
    """The image of a file, with rectangles, polygons and bitmaps.

    Raises:
        KeyError, TypeError, ValueError: if a figure is incomplete.
        LimitError: if a bitmap unpacks to far more than its size.
    """
    found, faults = list[Instance](), list[Fault]()
    for one in content['objects']:
        name, kind = text_of(one['classTitle']), one.get('geometryType')
        points = one.get('points') or {}
        if kind == 'rectangle':
            found.append(Instance(name, _flat(points['exterior']), origin=str(file), form='xyxy'))
            continue
        polygons = []
        if kind == 'polygon':
            polygons = [_flat(points['exterior'])]
            if points.get('interior'):
                faults.append(Fault('holes of polygons filled', str(file)))
        elif kind == 'bitmap':
            polygons = _of_bitmap(one['bitmap'], file)
        if polygons:
            found.append(Instance.of_polygons(name, polygons, str(file)))
        else:
            faults.append(Fault(NO_BOX, f'{kind} of {file}'))
    size = content['size']
    return Parsed([ParsedImage('', found, stated_size(size['width'], size['height']))], (), faults)


def _flat(points: Sequence[Sequence[float]]) -> list[float]:
    return [float(value) for value in chain(*points)]


def _of_bitmap(bitmap: Json, file: Path) -> list[list[float]]:
    """The polygons of a bitmap, a compressed PNG in base64."""
    packed, unpacker = b64decode(bitmap['data']), zlib.decompressobj()
    try:
        content = unpacker.decompress(packed, int(limit(UNPACKED) * len(packed)))
    except zlib.error as error:
        raise ValueError(f'a bitmap cannot be unpacked ({error})') from None
    if unpacker.unconsumed_tail:
        check_limit(file, UNPACKED, limit(UNPACKED) + 1)
    return outlines_of(content, bitmap['origin'])
