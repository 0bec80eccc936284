"""Classes of images: a folder for each in each split, or a table."""

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

from anyfolder.dataset import Dataset
from anyfolder.terminal import printable

from .placed_images import PlacedImage, place_file
from .write_coco import IGNORED

BETWEEN_LABELS = {*'|;,'}  # separators in a label column, at which a reader splits labels


def unfit_folders(data: Dataset) -> str:
    """The reason why folders cannot hold the classes, or empty."""
    if data.multi_label:
        return 'an image can have several classes or none, but is in one folder'
    for name in data.classes:
        if name.startswith('.') or not {*'/\\\0'}.isdisjoint(name) or printable(name) != name:
            return f'the class {name!r} cannot be the name of a folder'
    return ''


def write_folders(data: Dataset, placed: Sequence[PlacedImage], out: Path, copy: bool) -> None:
    """Write ``train/<class>/``, ``val/<class>/`` and ``test/<class>/``."""
    for one in placed:
        place_file(one.image.path, out / one.split / one.image.labels[0] / one.name, copy)


def write_table(data: Dataset, placed: Sequence[PlacedImage], out: Path, copy: bool) -> None:
    """Write ``labels.csv``, with a row for each image, or for each box.

    Labels are one column, or a column of 0 and 1 for each class if an image can have several, or if
    a class name contains a separator.
    """
    for one in placed:
        place_file(one.image.path, out / 'images' / one.split / one.name, copy)
    if data.task == 'detection':
        rows = _boxes(placed)
    elif data.multi_label or any(BETWEEN_LABELS & {*name} for name in data.classes):
        rows = _flags(data, placed)
    else:
        rows = _labels(placed)
    with (out / 'labels.csv').open('w', newline='', encoding='utf-8') as file:
        csv.writer(file, lineterminator='\n').writerows(rows)


def _path(one: PlacedImage) -> str:
    return f'images/{one.split}/{one.name}'


def _labels(placed: Sequence[PlacedImage]) -> Iterator[Sequence[object]]:
    yield 'file', 'label', 'split'
    for one in placed:
        yield _path(one), one.image.labels[0], one.split


def _flags(data: Dataset, placed: Sequence[PlacedImage]) -> Iterator[Sequence[object]]:
    yield 'file', *data.classes, 'split'
    for one in placed:
        yield _path(one), *(int(name in one.image.labels) for name in data.classes), one.split


def _boxes(placed: Sequence[PlacedImage]) -> Iterator[Sequence[object]]:
    corners = 'xmin', 'ymin', 'xmax', 'ymax'
    yield 'file', *corners, 'label', 'is_group_of', 'width', 'height', 'split'
    for one in placed:
        sides = one.image.size
        if not one.image.objects:
            yield _path(one), *[''] * 6, *sides, one.split
        for found in one.image.objects:
            left, top, width, height = found.box
            box = (f'{value:.10g}' for value in (left, top, left + width, top + height))
            label, crowd = found.label or IGNORED, int(found.crowd)
            yield _path(one), *box, label, crowd, *sides, one.split
