"""CVAT's own XML: images, or frames of a video with tracks, and their shapes in one file."""

import math
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as ET

from ..geometry import circle
from ..records import Instance
from ..splits import split_of
from .image_lists import NO_BOX
from .json_values import is_ignored, is_yes, stated_size
from .parsed import Fault, Parsed, ParsedImage

CORNERS = ('xtl', 'ytl', 'xbr', 'ybr')
FRAME = 'frame_{:06}'  # the name of a frame that CVAT exports


class _Key(NamedTuple):
    """The name of an image, and the subset of its task, by which a project has splits."""

    name: str
    subset: str = ''


def is_cvat(root: ET.Element, file: Path) -> bool:
    """True if this is the root of a file with a shape in an image or in a track."""
    shapes = chain(root.iterfind('image/*'), root.iterfind('track/*'))
    return root.tag == 'annotations' and any(True for _ in shapes)


def parse_cvat(root: ET.Element, file: Path) -> Parsed:
    """The images of a file, and the names of its labels in order.

    Run-length masks, points and open lines are left out with a fault. Tags, and shapes of a track
    where it is outside of the frame, are left out without a fault.

    Raises:
        KeyError, TypeError, ValueError: if a shape is incomplete.
    """
    names = [node.text or '' for node in root.iterfind('meta//labels/label/name')]
    images, faults = dict[_Key, ParsedImage](), list[Fault]()
    for image in root.iterfind('image'):
        stated, key = stated_size(image.get('width'), image.get('height')), _key_of(image)
        images[key] = ParsedImage(key.name, stated_size=stated, split=split_of(key.subset))
    for key, label, node in _shapes(root):
        name = key.name
        image_of_shape = images.setdefault(key, ParsedImage(name))
        origin = f'{name} in {file}'
        if instance := _instance(node, label, origin):
            image_of_shape.objects.append(instance)
        elif node.tag != 'tag':
            faults.append(Fault(NO_BOX, f'{node.tag} of {origin}'))
    return Parsed([*images.values()], names, faults)


def _key_of(image: ET.Element) -> _Key:
    return _Key(image.attrib['name'], image.get('subset', ''))


def _shapes(root: ET.Element) -> Iterator[tuple[_Key, str, ET.Element]]:
    """The image, the label and the element of each shape."""
    for image in root.iterfind('image'):
        for node in image:
            yield _key_of(image), node.attrib['label'], node
    for track in root.iterfind('track'):
        for node in track:
            if not is_yes(node.get('outside')):
                yield _Key(FRAME.format(int(node.attrib['frame']))), track.attrib['label'], node


def _instance(node: ET.Element, label: str, origin: str) -> Instance | None:
    """The object of a box, a polygon or an ellipse; None for any other shape."""
    attributes = {child.get('name'): child.text for child in node.iterfind('attribute')}
    crowd = is_ignored(attributes)
    if node.tag == 'box':
        corners = [node.attrib[key] for key in CORNERS]
        degrees = node.get('rotation')
        return Instance(label, corners, crowd=crowd, degrees=degrees, origin=origin, form='xyxy')
    if node.tag == 'polygon':
        points = [
            float(value) for pair in node.attrib['points'].split(';') for value in pair.split(',')
        ]
    elif node.tag == 'ellipse':
        cx, cy, rx, ry = (float(node.attrib[key]) for key in ('cx', 'cy', 'rx', 'ry'))
        points = circle((cx, cy), (rx, ry), radians=math.radians(float(node.get('rotation') or 0)))
    else:
        return None
    return Instance.of_polygons(label, [points], origin, crowd)
