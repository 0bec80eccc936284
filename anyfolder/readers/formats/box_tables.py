"""Tables with a box in each row: Open Images, and any with columns for images and corners."""

import re
from collections.abc import Sequence
from pathlib import Path

from ..column_titles import IMAGE_TITLES, LABEL_TITLES
from ..records import Instance
from ..split_columns import fold_note, split_column
from ..tables import Row
from .image_lists import NO_BOX
from .json_values import is_yes, stated_size
from .parsed import Fault, Parsed, ParsedImage

# Columns, as :func:`_plain` has them.
CORNERS = ('xmin', 'ymin', 'xmax', 'ymax'), ('x1', 'y1', 'x2', 'y2'), ('bbox',)
CLASSES = {*LABEL_TITLES, 'labelname', 'classname', 'name'}
OPEN_IMAGES = {'imageid', 'labelname', 'xmin', 'isgroupof'}
NUMBER = re.compile(r'[-+.\deE]*\d[-+.\deE]*')
ONLY_CLASS = 'object'  # the class in a table without a class column


def is_open_images(rows: Sequence[Row], file: Path) -> bool:
    """True if these rows have the columns of Open Images."""
    return bool(rows) and is_box_table(rows, file) and _titles(rows).keys() >= OPEN_IMAGES


def is_box_table(rows: Sequence[Row], file: Path) -> bool:
    """True if these rows have an image column, and four columns of corners or one of boxes."""
    titles = _titles(rows)
    return _image_column(titles) is not None and _box_columns(titles) is not None


def parse_box_table(rows: Sequence[Row], file: Path) -> Parsed:
    """The images of a table. A row without a box is an image without that object.

    Corners are left, top, right, bottom; a box column has left, top, width, height. If all numbers
    are from 0 to 1, they are fractions of the width and height, as in Open Images.

    Raises:
        ValueError: if a value is not a number.
        InputError: if a split column has unknown names.
    """
    titles, images, faults = _titles(rows), dict[str, ParsedImage](), dict[str, Fault]()
    image, columns = _image_column(titles), _box_columns(titles)
    if not (image and columns):  # there are no rows
        return Parsed([])
    others = ((name, title) for name, title in titles.items() if title != image)
    label = next((title for name, title in others if name in CLASSES), '')
    splits = split_column(file, rows)
    corners, form = [titles[name] for name in columns], 'xyxy' if len(columns) == 4 else 'xywh'
    width, height, group = (titles.get(name, '') for name in ('width', 'height', 'isgroupof'))
    for row in rows:
        name = row[image]
        if (one := images.get(name)) is None:
            split = splits.split_of_row(row) if splits else None
            stated = stated_size(row.get(width), row.get(height))
            one = images[name] = ParsedImage(name, stated=stated, split=split)
        origin = f'{name} in {file}'
        if box := [float(text) for title in corners for text in NUMBER.findall(row[title])]:
            kind, crowd = row.get(label, ONLY_CLASS), is_yes(row.get(group))
            one.objects.append(Instance(kind, box, crowd=crowd, origin=origin, form=form))
        else:
            faults[origin] = Fault(NO_BOX, origin)
    objects = [found for one in images.values() for found in one.objects]
    if objects and all(max(found.box) <= 1 for found in objects):
        for found in objects:
            found.relative = True
    noted = [Fault(*note)] if (note := fold_note(file, rows)) else []
    return Parsed([*images.values()], faults=[*faults.values(), *noted])


def _plain(title: str) -> str:
    return title.casefold().replace('_', '')


def _titles(rows: Sequence[Row]) -> dict[str, str]:
    """The columns by their plain names."""
    return {_plain(title): title for title in (rows[0] if rows else ())}


def _image_column(titles: dict[str, str]) -> str | None:
    return next((titles[name] for name in map(_plain, IMAGE_TITLES) if name in titles), None)


def _box_columns(titles: dict[str, str]) -> Sequence[str] | None:
    return next((names for names in CORNERS if {*names} <= titles.keys()), None)
