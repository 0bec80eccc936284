"""Write the classes of images as a folder for each class, or as a table; also boxes as a table."""

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

from anyfolder.dataset import Dataset
from anyfolder.terminal import printable

from .placed_images import PlacedImage, place_file
from .write_coco import IGNORED

LABEL_SEPARATORS = {*'|;,'}  # at which a reader splits the values of a label column


def obstacle_to_folders(data: Dataset) -> str:
    """The reason why folders cannot hold the classes, or empty."""
    if data.multi_label:
        return 'an image can have several classes or none, but is in one folder'
    for name in data.classes:
        if name.startswith('.') or not {*'/\\\0'}.isdisjoint(name) or printable(name) != name:
            return f'the class {name!r} cannot be the name of a folder'
    return ''


def write_folders(data: Dataset, placed: Sequence[PlacedImage], out: Path, copy: bool) -> None:
    """Write ``train/<class>/``, ``val/<class>/`` and ``test/<class>/``."""
    for entry in placed:
        place_file(entry.image.path, out / entry.split / entry.image.labels[0] / entry.name, copy)


def write_table(data: Dataset, placed: Sequence[PlacedImage], out: Path, copy: bool) -> None:
    """Write ``labels.csv``, with a row for each image, or for each box.

    Labels are one column, or a column of 0 and 1 for each class if an image can have several, or if
    a class name contains a separator.
    """
    for entry in placed:
        place_file(entry.image.path, out / 'images' / entry.split / entry.name, copy)
    if data.task == 'detection':
        rows = _box_rows(placed)
    elif data.multi_label or any(LABEL_SEPARATORS & {*name} for name in data.classes):
        rows = _flag_rows(data, placed)
    else:
        rows = _label_rows(placed)
    with (out / 'labels.csv').open('w', newline='', encoding='utf-8') as file:
        csv.writer(file, lineterminator='\n').writerows(rows)


def _path(entry: PlacedImage) -> str:
    return f'images/{entry.split}/{entry.name}'


def _label_rows(placed: Sequence[PlacedImage]) -> Iterator[Sequence[object]]:
    yield 'file', 'label', 'split'
    for entry in placed:
        yield _path(entry), entry.image.labels[0], entry.split


def _flag_rows(data: Dataset, placed: Sequence[PlacedImage]) -> Iterator[Sequence[object]]:
    yield 'file', *data.classes, 'split'
    for entry in placed:
        yield _path(entry), *(int(name in entry.image.labels) for name in data.classes), entry.split


def _box_rows(placed: Sequence[PlacedImage]) -> Iterator[Sequence[object]]:
    corners = 'xmin', 'ymin', 'xmax', 'ymax'
    yield 'file', *corners, 'label', 'is_group_of', 'width', 'height', 'split'
    for entry in placed:
        sides = entry.image.size
        if not entry.image.objects:
            yield _path(entry), *[''] * 6, *sides, entry.split
        for obj in entry.image.objects:
            left, top, width, height = obj.box
            box = (f'{value:.10g}' for value in (left, top, left + width, top + height))
            label, crowd = obj.label or IGNORED, int(obj.crowd)
            yield _path(entry), *box, label, crowd, *sides, entry.split
