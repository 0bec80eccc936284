"""Pascal VOC: an XML file for each image, anywhere in the folder."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from anyfolder.bounded import read_xml
from anyfolder.errors import InputError
from anyfolder.text import LONGEST_IN_LIST, read_lines

from .findings import Findings
from .identity import Index
from .image_tree import Tree, stated_size
from .polygons import box_around
from .records import Annotations, Instance, is_ignored, reading
from .splits import SPLITS, Split, split_in

CORNERS = ('xmin', 'ymin', 'xmax', 'ymax')


def voc_root(file: Path) -> ET.Element | None:
    """The root of an annotation of VOC, or None for another XML file.

    Raises:
        InputError: if it is not XML.
    """
    root = read_xml(file)
    return root if root.tag == 'annotation' else None


def read_voc(tree: Tree, files: dict[Path, ET.Element], findings: Findings) -> Annotations:
    """The images of XML files. Lists in ``ImageSets/Main`` give the splits, else the folders.

    Raises:
        InputError: if a file or list is not complete, or if an image is not there.
    """
    lists = [
        file
        for file in tree.others
        if file.parent.name == 'Main' and file.suffix == '.txt' and '_' not in file.stem
    ]
    splits = dict(_listed(tree, lists, files, findings))
    chosen = [file for file in files if not splits or file in splits]
    findings.warn_all('annotations left out, which are in no list', sorted({*files} - {*chosen}))
    records = []
    for file, path in _paired(tree, {file: files[file] for file in chosen}, findings):
        root = files[file]
        with reading(file, 'an object', 'Pascal VOC'):
            stated = stated_size(root.findtext('size/width'), root.findtext('size/height'))
            deleted = root.findall('object[deleted="1"]')  # of LabelMe in the browser
            kept = (node for node in root.iterfind('object') if node not in deleted)
            found = [_instance(node, file) for node in kept]
        for what, nodes in (('parts of', root.iterfind('object/part')), ('deleted', deleted)):
            names = (f'{node.findtext("name")!r} in {file}' for node in nodes)
            findings.warn_all(f'{what} objects left out', names)
        records.append(tree.record(path, file, splits.get(file), stated=stated, instances=found))
    _count_from_0([found for record in records for found in record.instances])
    return Annotations(records, used=lists, is_divided=bool(splits))


def _paired(
    tree: Tree, files: Mapping[Path, ET.Element], findings: Findings
) -> Iterator[tuple[Path, Path]]:
    """Each annotation with its image: that of its own name, else of the ``filename`` in it."""
    said = {file: (root.findtext('filename') or '').strip() for file, root in files.items()}
    pairs = tree.index.pair(
        {file: [file.stem if tree.index.has(file.stem) else said[file]] for file in files},
        findings,
    )
    for file in pairs.lost:
        what = 'annotations have no image of their name'
        findings.reject(what, 'add the images', str(file))
    for file, path in pairs.image_of.items():
        if said[file] and tree.index.match(said[file], file) not in ([], [path]):
            what = 'annotations that say the filename of another image, taken for that of their own'
            findings.warn(what, f'{said[file]} in {file}')
        yield file, path


def _count_from_0(objects: Sequence[Instance]) -> None:
    """VOC counts pixels from 1, within the box. A corner of 0 says that the program did not."""
    if not any(min(found.box[:2]) == 0 for found in objects):
        for found in objects:
            left, top, width, height = found.box
            found.box = left - 1, top - 1, width, height


def _listed(
    tree: Tree, lists: Sequence[Path], files: Iterable[Path], findings: Findings
) -> Iterator[tuple[Path, Split]]:
    """The part of each annotation by the lists nearest to it, that furthest from training last.

    The list of a class has -1, 0 or 1 after each image.
    """
    index = Index(tree.folder, [*files])
    for split in SPLITS:
        for listing in (one for one in lists if split_in(one.stem) == split):
            lines = {
                line: index.match(line, listing)
                or index.match(re.sub(r'\s+(-1|0|1)$', '', line), listing)
                for line in read_lines(listing, LONGEST_IN_LIST)
            }
            if split != 'test' and lines and not any(lines.values()):
                raise InputError(
                    f'--data: no line of {str(listing)!r} has an annotation, such as '
                    f'{next(iter(lines))!r}; correct the list, or remove it.'
                )
            for line, found in lines.items():
                yield from dict.fromkeys(found, split).items()
                if not found:
                    findings.warn(f'lines of {listing.name} left out, without an annotation', line)


def _instance(node: ET.Element, file: Path) -> Instance:
    """An object from its box, or else from its polygon: ``x1, y1, x2, y2, ...``, or LabelMe's."""
    name, origin = _text(node, 'name').strip(), str(file)
    corners = [
        float(point.text or 'nan')
        for point in node.iterfind('polygon//*')
        if re.fullmatch(r'[xy]\d*', point.tag)
    ]
    attributes = {
        each.findtext('name'): each.findtext('value') for each in node.iterfind('attributes/*')
    }
    degrees: Any = attributes.get('rotation')
    crowd = is_ignored({**{each.tag: each.text for each in node}, **attributes})
    if node.find('robndbox') is not None:  # of roLabelImg, in radians
        x, y, width, height, turn = (
            float(_text(node, f'robndbox/{name}')) for name in ('cx', 'cy', 'w', 'h', 'angle')
        )
        box, degrees = (x - width / 2, y - height / 2, width, height), math.degrees(turn)
    elif node.find('bndbox') is None and corners:
        box = box_around([corners])
    else:
        left, top, right, bottom = (float(_text(node, f'bndbox/{corner}')) for corner in CORNERS)
        box = left, top, right - left, bottom - top
    return Instance(name, box, crowd=crowd, degrees=degrees, origin=origin)


def _text(node: ET.Element, path: str) -> str:
    text = node.findtext(path)
    if not text or not text.strip():
        raise ValueError(f'it has no {path}')
    return text
