"""Write Pascal VOC: ``JPEGImages``, ``Annotations`` and ``ImageSets/Main``, with boxes only."""

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path

from anyfolder.dataset import Dataset, Object

from .placed_images import PlacedImage, place_file
from .write_coco import IGNORED


def write_voc(data: Dataset, placed: Sequence[PlacedImage], out: Path, copy: bool) -> None:
    """Write an XML file for each image. Pixels count from 1, and crowds are difficult."""
    lists = out / 'ImageSets/Main'
    lists.mkdir(parents=True)
    (out / 'Annotations').mkdir()
    for entry in placed:
        place_file(entry.image.path, out / 'JPEGImages' / entry.name, copy)
        root = ET.Element('annotation')
        ET.SubElement(root, 'filename').text = entry.name
        size = ET.SubElement(root, 'size')
        sides = dict(zip(('width', 'height'), entry.image.size, strict=True))
        for name, value in dict(sides, depth=entry.image.bands or 3).items():
            ET.SubElement(size, name).text = str(value)
        for obj in entry.image.objects:
            _add_object(root, obj)
        ET.indent(root)
        ET.ElementTree(root).write(out / f'Annotations/{entry.stem}.xml', encoding='utf-8')
    for split in dict.fromkeys(entry.split for entry in placed):
        names = (entry.stem for entry in placed if entry.split == split)
        text = ''.join(f'{name}\n' for name in names)
        (lists / f'{split}.txt').write_text(text, encoding='utf-8')


def _add_object(root: ET.Element, obj: Object) -> None:
    node = ET.SubElement(root, 'object')
    ET.SubElement(node, 'name').text = obj.label or IGNORED
    ET.SubElement(node, 'difficult').text = str(int(obj.crowd))
    box = ET.SubElement(node, 'bndbox')
    left, top, width, height = obj.box
    corners = left + 1, top + 1, left + width + 1, top + height + 1
    for name, value in zip(('xmin', 'ymin', 'xmax', 'ymax'), corners, strict=True):
        ET.SubElement(box, name).text = f'{round(value, 4):.10g}'
