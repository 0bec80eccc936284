"""DeepFashion2: ``annos/000001.json``, a file for each image with items that are numbered keys."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..records import Instance
from .json_values import Json, text_of
from .parsed import Parsed, ParsedImage

ITEM = re.compile(r'item\d+')


def is_deepfashion2(content: Any, file: Path) -> bool:
    """True if this is the content of a file with items."""
    return isinstance(content, Mapping) and isinstance(content.get('item1'), Mapping)


def parse_deepfashion2(content: Json, file: Path) -> Parsed:
    """The image of a file, with the box and polygons of each item.

    Raises:
        KeyError, TypeError: if an item is incomplete.
    """
    objects = [
        Instance(
            text_of(item['category_name']),
            item['bounding_box'],
            [*item['segmentation']] or None,
            origin=f'{key} of {file}',
            form='xyxy',
        )
        for key, item in content.items()
        if ITEM.fullmatch(key)
    ]
    return Parsed([ParsedImage('', objects)])
