"""The columns of a table of images: their names, their classes and their splits."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from anyfolder.errors import InputError, UnclearError
from anyfolder.wording import option

from .identity import Index
from .image_tree import Tree
from .json_tables import rows_in_json
from .named_folders import Folders, NamedFolders
from .splits import SPLITS, Split, split_in, split_of
from .tables import FIRST_ROWS, Row, read_rows

IMAGE_TITLES = (
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
LABEL_TITLES = (
    'label', 'labels', 'class', 'classes', 'category', 'target', 'tags', 'species', 'breed',
    'choice',  # of Label Studio
)  # fmt: skip
# Titles such as Finding Labels and class_name, and ClassId, used if there is none of these.
LABEL_TITLE = re.compile(rf'(^|[ _-])({"|".join(LABEL_TITLES)})([ _-]names?)?$', re.IGNORECASE)
CLASS_ID_TITLE = re.compile(
    r'(^|[ _-])(label|class|category|target)[ _-]?(id|idx|index)$', re.IGNORECASE
)
# Columns of what images have in common that must be in one split, such as patient_id.
GROUP_TITLE = re.compile(
    r'(patient|subject|participant|lesion|video|clip|sequence)([ _-]?(id|name))?', re.IGNORECASE
)
SPLIT_TITLES = ('split', 'set', 'subset', 'part', 'partition')
CODED_TITLE = 'partition'  # CelebA's column of split codes
SPLIT_CODES: dict[str, Split] = {'0': 'train', '1': 'val', '2': 'test'}
SPLIT_FLAG = 'is_'  # prefix of a boolean column for one split, such as is_valid
BOX_TITLES = {'xmin', 'x_min', 'x1', 'bbox', 'objects'}
ON_CELLS, OFF_CELLS = ('1', '1.0', 'true'), ('0', '0.0', 'false')  # of a column of one class


@dataclass
class ImageTable:
    """A table with a column of images, or of the folders that hold them.

    Attributes:
        file: the table.
        rows: its rows. A header that is one of them is among them.
        images: the column with the names of images, or of folders of images.
        folders: the folders that it may name.
        within: the column with the folder of each image, where names alone fit several.
        as_numbers: whether names are numbers, which those of images are with other zeros.
    """

    file: Path
    rows: list[Row]
    images: str
    folders: NamedFolders
    within: str = ''
    as_numbers: bool = False

    def match(self, row: Row, index: Index, split: Split | None = None) -> Sequence[Path]:
        """The images of a row: one, all in a folder, or several where the name is not clear."""
        name = row[self.images]
        if self.within:
            name = f'{row[self.within]}/{name}'
        match = index.match_number if self.as_numbers else index.match
        return match(name, self.file, split) if name else []

    def in_folder(self, row: Row) -> Sequence[Folders]:
        """The folders whose images a row is about, if it names no image."""
        return self.folders.match(row[self.images]) if row[self.images] else ()

    @cached_property
    def split_title(self) -> str | None:
        """The column of splits, see :func:`split_column`."""
        return split_column(self.file, self.rows)

    @cached_property
    def group_title(self) -> str:
        """The column of what images have in common, such as their patient; nothing without one.

        It is neither that of labels nor the same in all rows.
        """
        label = label_column(self.others)
        named = [name for name in self.others if GROUP_TITLE.fullmatch(name) and name != label]
        several = len(named) == 1 and len({row[named[0]] for row in self.rows}) > 1
        return named[0] if several and self.has_header else ''

    @property
    def has_header(self) -> bool:
        """True if the table has names of its columns; else the first row serves as these, too."""
        return self.rows[0][self.images] != self.images

    def split_said(self, row: Row) -> Split | None:
        """The split that a row says."""
        return split_in_cell(row[self.split_title], self.split_title) if self.split_title else None

    @cached_property
    def others(self) -> list[str]:
        """The columns that may be of labels."""
        taken = (self.images, self.split_title, self.within)
        return [name for name in self.rows[0] if name not in taken and not _is_split_title(name)]

    @cached_property
    def flags(self) -> list[str]:
        """The columns of 0 and 1, if all others are such: one for each class."""
        columns = self.others if self.has_header and len(self.others) > 1 else []
        named = not {*LABEL_TITLES}.isdisjoint(map(str.casefold, columns))
        cells = (row[name].casefold() for row in self.rows for name in columns)
        return columns if not named and all(cell in ON_CELLS + OFF_CELLS for cell in cells) else []

    @property
    def is_of_classes(self) -> bool:
        """True if columns are those of classes by their names or values, not as the only one."""
        return bool(self.flags or label_columns(self.others))

    def labels(self) -> list[str]:
        """The column of labels, or those of 0 and 1, one for each class.

        Raises:
            InputError: if there are several columns, and none is called so.
        """
        if boxes := BOX_TITLES & {name.casefold() for name in self.others}:
            raise InputError(
                f'{str(self.file)!r} has boxes in the column {boxes.pop()!r}; '
                f'give {option("task", "detection")}.'
            )
        if self.flags:
            return self.flags
        if label := label_column(self.others):
            return [label]
        raise UnclearError(
            f'{str(self.file)!r} has the columns {", ".join(self.rows[0])}, and none of '
            'them is called label; rename the one with the classes.',
            format='table',
            labels=[self.file],
        )


def find_table(tree: Tree, file: Path, folders: NamedFolders | None = None) -> ImageTable | None:
    """A table, if most of the first rows of a column are names of images, or of their folders."""
    is_json = file.suffix.lower() == '.json'
    rows = rows_in_json(tree.contents.json(file)) if is_json else read_rows(file)
    folders = folders or NamedFolders(tree)
    tried = rows[:FIRST_ROWS]
    names = [name for name in (rows[0] if rows else ()) if name.casefold() not in LABEL_TITLES]
    for column in sorted(names, key=lambda name: name.casefold() not in IMAGE_TITLES):
        found = [tree.index.match(row[column], file) for row in tried if row[column]]
        if 2 * sum(map(bool, found)) > len(tried):
            table = ImageTable(file, rows, column, folders)
            if 2 * sum(len(images) > 1 for images in found) > len(tried):
                others = (name for name in names if not all(split_of(row[name]) for row in tried))
                table.within = next((name for name in others if _is_within(table, name, tree)), '')
            if tree.index.match(column, file):
                rows.insert(0, {name: name for name in rows[0]})
            return table
    for column in names:
        if 2 * sum(bool(row[column] and folders.match(row[column])) for row in tried) > len(tried):
            return ImageTable(file, rows, column, folders)
    for column in (name for name in names if name.casefold() in IMAGE_TITLES):
        if 2 * sum(bool(tree.index.match_number(row[column], file)) for row in tried) > len(tried):
            return ImageTable(file, rows, column, folders, as_numbers=True)
    return None


def _is_within(table: ImageTable, column: str, tree: Tree) -> bool:
    """True for a column of folders that tells images of one name apart, as of frames of videos."""
    table = replace(table, within=column)
    found = [table.match(row, tree.index) for row in table.rows[:FIRST_ROWS]]
    return 2 * sum(len(images) == 1 for images in found) > len(found)


def label_column(columns: Sequence[str]) -> str | None:
    """Of the columns but that of images, that of labels: by its name, or the only one."""
    if len(named := label_columns(columns)) == 1:
        return named[0]
    return columns[0] if len(columns) == 1 else None


def label_columns(columns: Sequence[str]) -> list[str]:
    """The columns that are named as labels: of those with the surest names, one or several."""
    exact = [name for name in columns if name.casefold() in LABEL_TITLES][:1]
    return exact or next(
        (
            found
            for form in (LABEL_TITLE, CLASS_ID_TITLE)
            if (found := [name for name in columns if form.search(name)])
        ),
        [],
    )


def split_column(file: Path, rows: Sequence[Row]) -> str | None:
    """The column of splits, if there is one: by its title, or because all its values are splits.

    Raises:
        InputError: if it has the name and no such value.
    """
    named = next(filter(_is_split_title, rows[0]), None)
    if named is None:
        names = (name for name in rows[0] if name.casefold() not in LABEL_TITLES)
        return next((name for name in names if all(_is_split(row[name]) for row in rows)), None)
    if not any(split_in_cell(row[named], named) for row in rows):
        values = Counter(row[named] for row in rows).most_common()
        raise UnclearError(
            f'the column {named!r} of {str(file)!r} has values such as '
            f'{rows[0][named]!r}, none of which is train, val or test; write these, or rename the '
            'column.',
            format='table',
            labels=[file],
            columns=dict(split=named),
            splits={split: value for split, (value, _) in zip(SPLITS, values, strict=False)},
        )
    return named


def _is_split(value: str) -> bool:
    """True for the name of a split, not for a path with one."""
    return split_of(value) is not None and not {*'/\\.'} & {*value}


def _is_split_title(column: str) -> bool:
    """True for a column such as split, or is_valid with true and false."""
    name = column.casefold()
    return name in SPLIT_TITLES or (name.startswith(SPLIT_FLAG) and split_in(name) is not None)


def split_in_cell(value: str, column: str) -> Split | None:
    """The split that a cell of such a column names."""
    flag = split_in(column) if column.casefold().startswith(SPLIT_FLAG) else None
    if flag is None:
        return split_of(value) or (
            SPLIT_CODES.get(value) if column.casefold() == CODED_TITLE else None
        )
    if value.casefold() in ON_CELLS:
        return flag
    return 'val' if flag == 'train' else 'train'
