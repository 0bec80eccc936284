"""Lists of images with boxes: JSON of CreateML, BDD100K, Datumaro and Hugging Face, and tables."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .findings import Findings
from .image_tree import Tree, read_sizes, stated_size
from .records import Annotations, Instance, Json, is_ignored, reading, text_of
from .splits import split_of
from .table_columns import FILES, LABELS, part_column, part_of
from .tables import FORMS, read_objects, read_rows, read_table

# The format by the key of an image's objects, and the keys of its name.
FORMATS = dict(annotations='CreateML', labels='BDD100K', objects='Hugging Face', shapes='Datumaro')
IMAGES = ('image', 'imagefilename', 'file_name', 'name')
CLASSES = ('label', 'category', 'categories', 'class')
# With the center; with corners; left, top, width, height; x, y, x, y, ... of a polygon.
BOXES = ('coordinates', 'box2d', 'bbox', 'points')
# Columns of a table, as :func:`_plain` has them.
CORNERS = ('xmin', 'ymin', 'xmax', 'ymax'), ('x1', 'y1', 'x2', 'y2'), ('bbox',)
NAMES = {*LABELS, 'labelname', 'classname', 'name'}
GROUP = 'isgroupof'
TABLE = 'a table'
WORDS = 'CreateML, BDD100K, Datumaro or Hugging Face'
ONLY_CLASS = 'object'  # of a table without a column of classes
DESCRIPTIONS = 'class-descriptions'  # in the name of Open Images' table of /m/01g317 and others


def format_of(content: Any, file: Path) -> str | None:
    """The format of a list of images, by the first that has a box; None of other JSON.

    Raises:
        InputError: if the properties of an image's objects are not as many as these.
    """
    with reading(file, 'an image or a box', WORDS):
        for entry in _entries(content):
            for key, name in FORMATS.items():
                if any(map(_has_box, _objects(entry, key))):
                    return name
    return None


def box_tables(tree: Tree) -> dict[str, dict[Path, Any]]:
    """The tables with boxes, and the ``metadata.jsonl`` of Hugging Face, by their format."""
    found: dict[str, dict[Path, Any]] = {}
    for file in tree.others:
        if file.suffix.lower() not in FORMS:
            continue
        is_json = file.suffix.lower() == '.jsonl'
        content = dict(frames=read_objects(file)) if is_json else _of_table(file)
        if name := TABLE if content and not is_json else format_of(content, file):
            found.setdefault(name, {})[file] = content
    return found


def read_image_lists(tree: Tree, files: Mapping[Path, Any], findings: Findings) -> Annotations:
    """The images of some of these lists.

    Raises:
        InputError: if a file is not complete.
    """
    records = []
    tables = [file for file in tree.others if DESCRIPTIONS in file.name]
    described = {row[0]: row[-1] for file in tables for row in read_table(file)}
    for file, content in files.items():
        split = tree.split_said(file)
        listed = []
        for entry in _entries(content):
            with reading(file, 'an image or a box', WORDS):
                name = str(_first(entry, IMAGES))
                origin = f'{name} in {file}'
                objects = [one for key in FORMATS for one in _objects(entry, key)]
                found = [_instance(one, origin) for one in objects if _has_box(one)]
            if len(found) < len(objects):
                findings.warn('objects without a box left out', origin)
            own = split_of(str(entry.get('split'))) or split
            if path := tree.resolve(name, file, own, findings):
                stated = stated_size(entry.get('width'), entry.get('height'))
                listed.append(tree.record(path, file, own, stated=stated, instances=found))
        if isinstance(content, Mapping) and content.get('relative'):
            listed = read_sizes(tree, listed, findings)
            for record in listed:
                for one in record.instances:
                    one.box = [value * record.size[i % 2] for i, value in enumerate(one.box)]
        records += listed
    for one in (one for record in records for one in record.instances):
        one.name = described.get(one.name, one.name)
    return Annotations(records, used=tables)


def _of_table(file: Path) -> dict[str, Any] | None:
    """The images of a table with boxes as a list in JSON; None of another table.

    Numbers from 0 to 1 alone are shares of the width and height, as in Open Images.
    """
    titles = {_plain(title): title for title in (read_table(file, most=20) or [[]])[0]}
    image = next((titles[name] for name in map(_plain, FILES) if name in titles), None)
    corners = next((names for names in CORNERS if {*names} <= titles.keys()), None)
    if not (image and corners):
        return None
    label = next((title for name, title in titles.items() if name in NAMES and title != image), '')
    entries: dict[str, dict[str, Any]] = {}
    largest = 0.0
    rows = read_rows(file)
    part = part_column(file, rows) if rows else None
    for row in rows:
        more = {name: row.get(titles.get(name, '')) for name in ('width', 'height')}
        more['split'] = part_of(row[part], part) if part else None
        entry = entries.setdefault(row[image], dict(file_name=row[image], objects=[], **more))
        text = ' '.join(row[titles[name]] for name in corners)
        box = [float(number) for number in re.findall(r'[-+.\deE]*\d[-+.\deE]*', text)]
        largest = max([largest, *box])
        if len(box) == 4 and len(corners) == 4:
            box = [box[0], box[1], box[2] - box[0], box[3] - box[1]]
        ignore = row.get(titles.get(GROUP, ''))
        entry['objects'].append(dict(label=row.get(label, ONLY_CLASS), bbox=box, ignore=ignore))
    return dict(frames=[*entries.values()], relative=largest <= 1)


def _plain(title: str) -> str:
    return title.casefold().replace('_', '')


def _entries(content: Any) -> Sequence[Json]:
    """The images of a list, which newer files of BDD100K call frames."""
    match content:
        case {'items': [*items], 'categories': {'label': {'labels': [*labels]}}}:
            return _of_datumaro(items, [label['name'] for label in labels])
    found = content.get('frames') if isinstance(content, Mapping) else content
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []


def _of_datumaro(items: Sequence[Json], names: Sequence[str]) -> Sequence[Json]:
    """The images of Datumaro's JSON, whose objects have numbers of these names.

    Its keypoints and open lines have points, too, but are no polygons.
    """
    entries = []
    for item in items:
        image = item.get('image', {})
        height, width = image.get('size', (0, 0))
        shapes = [
            dict(
                one,
                label=names[one['label_id']],
                points=one['points'] if one['type'] == 'polygon' else None,
            )
            for one in item['annotations']
            if one.get('label_id') is not None
        ]
        name = image.get('path') or item['id']
        entries.append(dict(file_name=name, width=width, height=height, shapes=shapes))
    return entries


def _objects(entry: Json, key: str) -> Sequence[Json]:
    """The objects of an image. Hugging Face has a list of each property in place of each object."""
    found = entry.get(key) or []
    if isinstance(found, Mapping):
        columns = {name: values for name, values in found.items() if isinstance(values, list)}
        rows = zip(*columns.values(), strict=True)
        found = [dict(zip(columns, row, strict=True)) for row in rows]
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []


def _has_box(one: Json) -> bool:
    return any(map(one.get, BOXES))


def _first(found: Json, keys: Sequence[str]) -> Any:
    return found[next((key for key in keys if key in found), keys[0])]


def _instance(one: Json, origin: str) -> Instance:
    name, crowd = text_of(_first(one, CLASSES)), is_ignored(one)
    box: Any = one.get('bbox')
    if points := one.get('points'):
        return Instance.of_polygons(name, [points], origin, crowd)
    if center := one.get('coordinates'):
        x, y, width, height = (float(center[key]) for key in ('x', 'y', 'width', 'height'))
        box = x - width / 2, y - height / 2, width, height
    elif corners := one.get('box2d'):
        left, top, right, bottom = (float(corners[key]) for key in ('x1', 'y1', 'x2', 'y2'))
        box = left, top, right - left, bottom - top
    return Instance(name, box, crowd=crowd, origin=origin)
