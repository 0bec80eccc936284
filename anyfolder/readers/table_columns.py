"""The columns of a table of images: their names, their classes and their splits."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from anyfolder.errors import InputError, UnclearError
from anyfolder.pixels.image_files import IMAGE_SUFFIXES
from anyfolder.wording import option

from .identity import Index
from .image_tree import Tree
from .json_tables import rows_in_json
from .named_folders import Folders, NamedFolders
from .splits import SPLITS, Split, split_in, split_of
from .tables import FIRST_ROWS, Row

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
# A column of numbers of folds, of which each validates once, and a value of it.
FOLD_TITLE = re.compile(r'((cv|k)[ _-]?)?folds?([ _-]?(id|idx|no|number))?', re.IGNORECASE)
LEAST_FOLDS = 3  # two may be the images to train on and to validate, in either order
FOLD = re.compile(r'(?:fold)?[ _-]?(\d{1,3})(?:\.0)?', re.IGNORECASE)
BOX_TITLES = {'xmin', 'x_min', 'x1', 'bbox', 'objects'}
ON_CELLS, OFF_CELLS = ('1', '1.0', 'true'), ('0', '0.0', 'false')  # of a column of one class


class SplitColumn(NamedTuple):
    """The column of splits in a table.

    Attributes:
        title: of the column.
        codes: what values stand for that are no words, such as numbers of folds.
        note: what was decided of it, and the example, for :meth:`.Findings.warn`; or nothing.
    """

    title: str
    codes: Mapping[str, Split] = {}
    note: tuple[str, str] | None = None

    def said(self, row: Row) -> Split | None:
        """The split that a row says."""
        value, name = row[self.title], self.title.casefold()
        if name.startswith(SPLIT_FLAG) and (flag := split_in(name)):
            if value.casefold() in ON_CELLS:
                return flag
            return 'val' if flag == 'train' else 'train'
        return self.codes.get(value) or split_of(value)


@dataclass
class ImageTable:
    """A table with a column of images, or of the folders that hold them.

    Attributes:
        file: the table.
        rows: its rows. A header that is one of them is among them.
        images: the column with the names of images, or of folders of images.
        folders: the folders that it may name.
        within: the column with the folder of each image, where names alone fit several.
        of_folders: whether names are of folders.
        as_numbers: whether names are numbers, which those of images or folders are with other
            zeros.
    """

    file: Path
    rows: list[Row]
    images: str
    folders: NamedFolders
    within: str = ''
    of_folders: bool = False
    as_numbers: bool = False

    def match(self, row: Row, index: Index, split: Split | None = None) -> Sequence[Path]:
        """The images of a row: one, all in a folder, or several where the name is not clear."""
        name = '' if self.of_folders else row[self.images]
        if self.within:
            name = f'{row[self.within]}/{name}'
        match = index.match_number if self.as_numbers else index.match
        return match(name, self.file, split) if name else []

    def in_folder(self, row: Row) -> Sequence[Folders]:
        """The folders whose images a row is about, if it names no image."""
        numbered = self.as_numbers and self.of_folders
        match = self.folders.match_number if numbered else self.folders.match
        return match(row[self.images]) if row[self.images] else ()

    @cached_property
    def splits(self) -> SplitColumn | None:
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
        return self.splits.said(row) if self.splits else None

    @cached_property
    def others(self) -> list[str]:
        """The columns that may be of labels."""
        taken = (self.images, self.splits and self.splits.title, self.within)
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
    rows = rows_in_json(tree.contents.json(file)) if is_json else tree.contents.rows(file)
    folders = folders or NamedFolders(tree)
    tried = rows[:FIRST_ROWS]
    names = [name for name in (rows[0] if rows else ()) if name.casefold() not in LABEL_TITLES]

    def rank(name: str) -> tuple[bool, bool]:
        """Names with the suffix of an image are not numbers of rows, whatever their title."""
        return not _name_most(_has_suffix, name, tried), name.casefold() not in IMAGE_TITLES

    for column in sorted(names, key=rank):
        found = [tree.index.match(row[column], file) for row in tried if row[column]]
        if 2 * sum(map(bool, found)) > len(tried):
            table = ImageTable(file, rows, column, folders)
            if 2 * sum(len(images) > 1 for images in found) > len(tried):
                others = (name for name in names if not all(split_of(row[name]) for row in tried))
                table.within = next((name for name in others if _is_within(table, name, tree)), '')
                table.of_folders = not table.within and _name_most(folders.match, column, tried)
            if tree.index.match(column, file):
                rows.insert(0, {name: name for name in rows[0]})
            return table
    for column in names:
        if _name_most(folders.match, column, tried):
            return ImageTable(file, rows, column, folders, of_folders=True)
    return _with_numbers(tree, ImageTable(file, rows, '', folders), names)


def _with_numbers(tree: Tree, table: ImageTable, names: Sequence[str]) -> ImageTable | None:
    """The table with its column of numbers that images or folders have with other zeros."""
    tried = table.rows[:FIRST_ROWS]
    named = [name for name in names if name.casefold() in IMAGE_TITLES]
    groups = [name for name in names if GROUP_TITLE.fullmatch(name)]
    # Of other titles, such as BraTS21ID, a number of its own in each row is a name.
    keys = [name for name in names if len({row[name] for row in table.rows}) == len(table.rows)]

    def images(name: str) -> Sequence[Path]:
        return tree.index.match_number(name, table.file)

    def one_image(name: str) -> bool:
        return len(images(name)) == 1

    for columns, match, of_folders in (
        (named, one_image, False),
        ([*groups, *named, *keys], table.folders.match_number, True),
        (named, images, False),
    ):
        for column in columns:
            if _name_most(match, column, tried):
                return replace(table, images=column, of_folders=of_folders, as_numbers=True)
    return None


def _name_most(match: Callable[[str], object], column: str, rows: Sequence[Row]) -> bool:
    """True if something is found for the values of a column in most of some rows."""
    return 2 * sum(bool(row[column] and match(row[column])) for row in rows) > len(rows)


def _has_suffix(name: str) -> bool:
    return name.lower().endswith(IMAGE_SUFFIXES)


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


def split_column(file: Path, rows: Sequence[Row]) -> SplitColumn | None:
    """The column of splits, if there is one: by its title, or because all its values are splits.

    Of folds, the first one validates, and the others are to train on.

    Raises:
        InputError: if it has the name and no such value.
    """
    named = next(filter(_is_split_title, rows[0]), None)
    if named is None:
        if (title := next(filter(FOLD_TITLE.fullmatch, rows[0]), None)) and (
            folds := _folds(file, rows, title)
        ):
            return folds
        names = (name for name in rows[0] if name.casefold() not in LABEL_TITLES)
        title = next((name for name in names if all(_is_split(row[name]) for row in rows)), None)
        return SplitColumn(title) if title else None
    found = SplitColumn(named, SPLIT_CODES if named.casefold() == CODED_TITLE else {})
    if not any(map(found.said, rows)):
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
    return found


def _folds(file: Path, rows: Sequence[Row], title: str) -> SplitColumn | None:
    """A column of folds, None if its values are no numbers of these, or are of too few."""
    values = {row[title] for row in rows}
    numbers = {value: int(fold[1]) for value in values if (fold := FOLD.fullmatch(value))}
    first = min(numbers.values(), default=0)
    codes: dict[str, Split] = {
        value: 'val' if number == first else 'train' for value, number in sorted(numbers.items())
    }
    if len(numbers) < len(values - {''}) or len({*numbers.values()}) < LEAST_FOLDS:
        return None
    splits = {split: [one for one in codes if codes[one] == split] for split in ('train', 'val')}
    what = (
        'columns of folds, of which the first validates and the others are trained on; for '
        "another one, write them into a layout's columns and splits"
    )
    return SplitColumn(
        title, codes, (what, f'columns: {{split: {title}}}, splits: {splits} of {file}')
    )


def _is_split(value: str) -> bool:
    """True for the name of a split, not for a path with one."""
    return split_of(value) is not None and not {*'/\\.'} & {*value}


def _is_split_title(column: str) -> bool:
    """True for a column such as split, or is_valid with true and false."""
    name = column.casefold()
    return name in SPLIT_TITLES or (name.startswith(SPLIT_FLAG) and split_in(name) is not None)
