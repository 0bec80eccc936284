"""The columns of a table of images: of their names, their classes and their parts."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from anyfolder.errors import InputError
from anyfolder.wording import option

from .image_tree import Tree
from .splits import Split, split_in, split_of
from .tables import TRIED, Row, read_rows

FILES = (
    'file',
    'filename',
    'file_name',
    'image',
    'image_id',
    'imageid',
    'image_name',
    'path',
    'img',
    'name',
    'id',
)
LABELS = ('label', 'labels', 'class', 'classes', 'category', 'target', 'tags', 'species', 'breed')
# Finding Labels, class_name
LABELED = re.compile(rf'(^|[ _-])({"|".join(LABELS)})([ _-]names?)?$', re.IGNORECASE)
PARTS = ('split', 'set', 'subset', 'part', 'partition')
FLAG = 'is_'  # at the beginning of a column of yes and no for a part
BOXES = {'xmin', 'x_min', 'x1', 'bbox', 'objects'}
ON, OFF = ('1', '1.0', 'true'), ('0', '0.0', 'false')  # of a column of one class


@dataclass
class ImageTable:
    """A table with a column of images.

    Attributes:
        file: the table.
        rows: its rows. A header that is one of them is among them.
        images: the column with the names of images.
    """

    file: Path
    rows: list[Row]
    images: str

    @cached_property
    def part(self) -> str | None:
        """The column of parts, see :func:`part_column`."""
        return part_column(self.file, self.rows)

    @property
    def has_header(self) -> bool:
        """True if the table has names of its columns; else the first row serves as these, too."""
        return self.rows[0][self.images] != self.images

    def part_of(self, row: Row) -> Split | None:
        """The part that a row says."""
        return part_of(row[self.part], self.part) if self.part else None

    def labels(self) -> list[str]:
        """The column of labels, or those of 0 and 1, one for each class.

        Raises:
            InputError: if there are several columns, and none is called so.
        """
        taken = (self.images, self.part)
        others = [name for name in self.rows[0] if name not in taken and not _says_part(name)]
        if boxes := BOXES & {name.casefold() for name in others}:
            raise InputError(
                f'{str(self.file)!r} has boxes in the column {boxes.pop()!r}; '
                f'give {option("task", "detection")}.'
            )
        named = not {*LABELS}.isdisjoint(map(str.casefold, others))
        flags = others if self.has_header and not named and len(others) > 1 else []
        if flags and all(row[name].casefold() in ON + OFF for row in self.rows for name in flags):
            return flags
        if label := label_column(others):
            return [label]
        raise InputError(
            f'{str(self.file)!r} has the columns {", ".join(self.rows[0])}, and none of '
            'them is called label; rename the one with the classes.'
        )


def find_table(tree: Tree, file: Path) -> ImageTable | None:
    """A table, if most of the first rows of a column are names of images."""
    rows = read_rows(file)
    tried = rows[:TRIED]
    names = [name for name in (rows[0] if rows else ()) if name.casefold() not in LABELS]
    for column in sorted(names, key=lambda name: name.casefold() not in FILES):
        found = sum(bool(tree.index.match(row[column], file)) for row in tried if row[column])
        if found > len(tried) / 2:
            if tree.index.match(column, file):
                rows.insert(0, {name: name for name in rows[0]})
            return ImageTable(file, rows, column)
    return None


def label_column(columns: Sequence[str]) -> str | None:
    """Of the columns but that of images, that of labels: by its name, or the only one."""
    exact = [name for name in columns if name.casefold() in LABELS][:1]
    found = exact or [name for name in columns if LABELED.search(name)] or columns
    return found[0] if len(found) == 1 else None


def part_column(file: Path, rows: Sequence[Row]) -> str | None:
    """The column of parts, if there is one: by its name, or since all its values are parts.

    Raises:
        InputError: if it has the name and no such value.
    """
    named = next(filter(_says_part, rows[0]), None)
    if named is None:
        names = (name for name in rows[0] if name.casefold() not in LABELS)
        return next((name for name in names if all(split_of(row[name]) for row in rows)), None)
    if not any(part_of(row[named], named) for row in rows):
        raise InputError(
            f'the column {named!r} of {str(file)!r} has values such as '
            f'{rows[0][named]!r}, none of which is train, val or test; write these, or rename the '
            'column.'
        )
    return named


def _says_part(column: str) -> bool:
    """True for a column such as split, or is_valid with true and false."""
    name = column.casefold()
    return name in PARTS or (name.startswith(FLAG) and split_in(name) is not None)


def part_of(value: str, column: str) -> Split | None:
    """The part that a row of such a column says."""
    flag = split_in(column) if column.casefold().startswith(FLAG) else None
    if flag is None:
        return split_of(value)
    if value.casefold() in ON:
        return flag
    return 'val' if flag == 'train' else 'train'
