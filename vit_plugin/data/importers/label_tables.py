"""Tables of the classes of images: ``train.csv``, ``metadata.csv``, ``_classes.csv``."""

import csv
import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from vit_plugin.errors import ConfigError
from vit_plugin.files.text import read_text

from .findings import Findings
from .photos import Photo, Tree
from .splits import split_in, split_of

FILES = (
    'file',
    'filename',
    'file_name',
    'image',
    'image_id',
    'image_name',
    'path',
    'img',
    'name',
    'id',
)
LABELS = ('label', 'labels', 'class', 'classes', 'category', 'target', 'tags', 'species', 'breed')
PARTS = ('split', 'set', 'subset', 'part', 'partition', 'fold')
SEPARATORS = re.compile(r'\s*[|;,]\s*')
SAMPLE = 'submission'  # in the name of a table of Kaggle whose labels are made up
TRIED = 20  # rows in which a column is tried for names of images

LabelRow = Mapping[str, str]


def read_tables(tree: Tree, findings: Findings) -> tuple[list[Photo], bool, list[Path]]:
    """The images that tables give classes to.

    A table has a column of images, with or without their suffix, and either one of labels, of which
    ``|``, ``;`` or ``,`` separate several, or one of 0 and 1 for each class. A column of parts is
    optional. Its name or folder may say the part, too.

    Returns:
        The photographs, whether one may have several classes, and the tables.

    Raises:
        ConfigError: if a table has images, and no column that can be their label.
    """
    photos: dict[Path, Photo] = {}
    tables = []
    several = False
    for file in tree.others:
        if file.suffix.lower() not in ('.csv', '.tsv') or SAMPLE in file.stem.casefold():
            continue
        rows = _rows(file)
        column = _file_column(tree, file, rows)
        if column is None:
            continue
        tables.append(file)
        if len(rows[0]) == 1:
            findings.note('tables left out, which have no column but that of images', file)
            continue
        labels, one_hot = _label_columns(file, rows, column)
        part = next((name for name in rows[0] if name.casefold() in PARTS), None)
        split = split_in(file.stem) or tree.split(file)
        for row in rows:
            path = tree.find(row[column], file, split)
            if path is None:
                findings.note(
                    f'rows of {file.name} left out, whose image is not there', row[column]
                )
                continue
            own = split_of(row[part]) if part else split
            names = _names(row, labels, one_hot)
            photo = photos.setdefault(path, Photo(path, own or tree.split(path), origin=str(file)))
            photo.labels = tuple(dict.fromkeys([*photo.labels, *names]))
    several = any(len(photo.labels) != 1 for photo in photos.values())
    return sorted(photos.values(), key=lambda photo: (photo.labels, photo.path)), several, tables


def _rows(file: Path) -> list[LabelRow]:
    text = read_text(file)
    try:
        dialect: type[csv.Dialect] = csv.Sniffer().sniff(text[:4096], ',;\t')
    except csv.Error:
        dialect = csv.excel
    rows = csv.DictReader(io.StringIO(text, newline=''), dialect=dialect, skipinitialspace=True)
    return [
        {
            (key or '').strip(): (value or '').strip()
            for key, value in row.items()
            if isinstance(value, str)
        }
        for row in rows
    ]


def _file_column(tree: Tree, file: Path, rows: Sequence[LabelRow]) -> str | None:
    """The column with names of images: most of its first rows are found."""
    tried = rows[:TRIED]
    columns = sorted(rows[0] if rows else (), key=lambda name: name.casefold() not in FILES)
    for column in columns:
        found = sum(tree.find(row[column], file) is not None for row in tried if row.get(column))
        if tried and found > len(tried) / 2:
            return column
    return None


def _label_columns(file: Path, rows: Sequence[LabelRow], column: str) -> tuple[list[str], bool]:
    """The columns of labels, and whether each is one class with 0 and 1."""
    others: list[str] = [
        name for name in rows[0] if name != column and name.casefold() not in PARTS
    ]
    named = [name for name in others if name.casefold() in LABELS]
    if named:
        return named[:1], False
    if len(others) > 1 and all(
        row.get(name) in ('0', '1', '0.0', '1.0') for row in rows for name in others
    ):
        return others, True
    if len(others) == 1:
        return others, False
    raise ConfigError(
        f'--data: {str(file)!r} has the columns {", ".join(rows[0])}, and none of them is called '
        'label; rename the one with the classes.'
    )


def _names(row: LabelRow, labels: Sequence[str], one_hot: bool) -> list[str]:
    if one_hot:
        return [name for name in labels if float(row[name]) == 1]
    return [name for name in SEPARATORS.split(row[labels[0]]) if name]
