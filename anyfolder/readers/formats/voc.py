"""Pascal VOC: an XML file for each image, as written by LabelImg, CVAT and LabelMe's web tool."""

import math
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from ..records import Instance
from .json_values import is_ignored, stated_size
from .parsed import Fault, Parsed, ParsedImage

CORNERS = ('xmin', 'ymin', 'xmax', 'ymax')
CENTER = ('cx', 'cy', 'w', 'h')  # roLabelImg's rotated box


def is_voc(root: ET.Element, file: Path) -> bool:
    """True if this is the root of a VOC annotation. Only other formats need ``file``."""
    return root.tag == 'annotation'


def voc_image(root: ET.Element) -> str:
    """The name of an annotation's image, often a path on the machine where it was annotated."""
    return (root.findtext('filename') or '').strip()


def parse_voc(root: ET.Element, file: Path) -> Parsed:
    """The image of an annotation. Its corners may be counted from 1, see :class:`Instance`.

    Raises:
        ValueError: if an object is incomplete.
    """
    stated = stated_size(root.findtext('size/width'), root.findtext('size/height'))
    deleted = root.findall('object[deleted="1"]')  # the mark of LabelMe's web tool
    objects = [_instance(node, file) for node in root.iterfind('object') if node not in deleted]
    faults = [
        Fault(what, f'{node.findtext("name")!r} in {file}')
        for what, nodes in (
            ('parts of objects left out', root.iterfind('object/part')),
            ('deleted objects left out', deleted),
        )
        for node in nodes
    ]
    return Parsed([ParsedImage(voc_image(root), objects, stated)], faults=faults)


def _instance(node: ET.Element, file: Path) -> Instance:
    """Read an object: a rotated box (``robndbox``), or a box or polygon, or both.

    A polygon's points are ``x1``, ``y1``, ``x2`` and so on, or LabelMe's ``pt`` with ``x`` and
    ``y``.
    """
    attributes = {
        item.findtext('name'): item.findtext('value') for item in node.iterfind('attributes/*')
    }
    instance = Instance(
        _text(node, 'name').strip(),
        box=(),  # set below
        crowd=is_ignored({**{child.tag: child.text for child in node}, **attributes}),
        degrees=attributes.get('rotation'),
        origin=str(file),
        form='xyxy',
        from_1=True,
    )
    points = [
        float(point.text or 'nan')
        for point in node.iterfind('polygon//*')
        if re.fullmatch(r'[xy]\d*', point.tag)
    ]
    if node.find('robndbox') is not None:
        # roLabelImg writes Qt's coordinates, which begin at 0.
        instance.form, instance.from_1 = 'center', False
        instance.box = _numbers(node, 'robndbox', CENTER)
        instance.degrees = math.degrees(float(_text(node, 'robndbox/angle')))
        return instance
    if points:
        instance.segmentation = [points]
    if node.find('bndbox') is not None or not points:
        instance.box = _numbers(node, 'bndbox', CORNERS)
    return instance


def _numbers(node: ET.Element, path: str, names: tuple[str, ...]) -> list[Any]:
    return [float(_text(node, f'{path}/{name}')) for name in names]


def _text(node: ET.Element, path: str) -> str:
    """The text of an element.

    Raises:
        ValueError: if it is missing or empty.
    """
    text = node.findtext(path)
    if not text or not text.strip():
        raise ValueError(f'it has no {path}')
    return text
