"""Tables with a box in each row: Open Images, and any with columns for images and corners."""

import re
from collections.abc import Sequence
from pathlib import Path

from ..column_titles import IMAGE_TITLES, LABEL_TITLES
from ..division import furthest
from ..records import Instance
from ..split_columns import fold_note, split_column
from ..tables import Row
from .image_lists import NO_BOX
from .json_values import IGNORED, is_yes, stated_size
from .parsed import Fault, Parsed, ParsedImage

# Titles of columns, in the form of `_plain_title`.
BOX_COLUMNS = ('xmin', 'ymin', 'xmax', 'ymax'), ('x1', 'y1', 'x2', 'y2'), ('bbox',)
CLASS_TITLES = {*LABEL_TITLES, 'labelname', 'classname', 'name'}
OPEN_IMAGES = {'imageid', 'labelname', 'xmin', 'isgroupof'}
FLAGS = {'isgroupof', *(name.replace('_', '') for name in IGNORED)}
NUMBER = re.compile(r'[-+.\deE]+')  # if it has a digit
ONLY_CLASS = 'object'  # the class in a table without a class column


def is_open_images(rows: Sequence[Row], file: Path) -> bool:
    """True if these rows have the columns of Open Images."""
    return bool(rows) and is_box_table(rows, file) and _titles(rows).keys() >= OPEN_IMAGES


def is_box_table(rows: Sequence[Row], file: Path) -> bool:
    """True if these rows have an image column, and four columns of corners or one of boxes."""
    titles = _titles(rows)
    return _image_column(titles) is not None and _box_columns(titles) is not None


def parse_box_table(rows: Sequence[Row], file: Path) -> Parsed:
    """The images of a table. A row without numbers for its box only names an image, with a fault.

    Corners are left, top, right, bottom; a box column has left, top, width, height. If no number
    exceeds 1, they are fractions of the width and height, as in Open Images. An image whose rows
    have several splits is in the one furthest from training.

    Raises:
        ValueError: if a value is not a number.
        InputError: if a split column has unknown names.
    """
    titles, images = _titles(rows), dict[str, ParsedImage]()
    # One of each kind for an image.
    faults, split_faults = dict[str, Fault](), dict[str, Fault]()
    image_title, box_names = _image_column(titles), _box_columns(titles)
    if not (image_title and box_names):  # there are no rows
        return Parsed([])
    others = ((name, title) for name, title in titles.items() if title != image_title)
    label_title = next((title for name, title in others if name in CLASS_TITLES), '')
    splits = split_column(file, rows)
    box_titles = [titles[name] for name in box_names]
    form = 'xyxy' if len(box_titles) == 4 else 'xywh'
    # Empty titles have no value in any row.
    width, height = (titles.get(name, '') for name in ('width', 'height'))
    flags = [title for name, title in titles.items() if name in FLAGS]
    for row in rows:
        name, split = row[image_title], splits.split_of_row(row) if splits else None
        origin = f'{name} in {file}'
        if (image := images.get(name)) is None:
            stated = stated_size(row.get(width), row.get(height))
            image = images[name] = ParsedImage(name, stated_size=stated, split=split)
        if split and image.split and split != image.split:
            what = 'images in several splits, left out of training'
            split_faults[name] = Fault(what, origin)
        image.split = furthest([image.split, split])
        if box := [number for title in box_titles for number in _numbers_in(row[title])]:
            class_name = row.get(label_title, ONLY_CLASS)
            crowd = any(is_yes(row[title]) for title in flags)
            image.objects.append(Instance(class_name, box, crowd=crowd, origin=origin, form=form))
        else:
            faults[origin] = Fault(NO_BOX, origin)
    objects = [instance for image in images.values() for instance in image.objects]
    if objects and all(max(instance.box) <= 1 for instance in objects):
        for instance in objects:
            instance.relative = True
    fold_faults = [Fault(*note)] if (note := fold_note(file, rows)) else []
    return Parsed(
        [*images.values()], faults=[*faults.values(), *split_faults.values(), *fold_faults]
    )


def _numbers_in(text: str) -> list[float]:
    found = NUMBER.findall(text)
    return [float(number) for number in found if any(map(str.isdecimal, number))]


def _plain_title(title: str) -> str:
    """A title in small letters and without underscores."""
    return title.casefold().replace('_', '')


def _titles(rows: Sequence[Row]) -> dict[str, str]:
    """The titles by their plain forms."""
    return {_plain_title(title): title for title in (rows[0] if rows else ())}


def _image_column(titles: dict[str, str]) -> str | None:
    return next((titles[name] for name in map(_plain_title, IMAGE_TITLES) if name in titles), None)


def _box_columns(titles: dict[str, str]) -> Sequence[str] | None:
    return next((names for names in BOX_COLUMNS if {*names} <= titles.keys()), None)
