"""Tables of images: the column with their names, and the meaning of the others."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from anyfolder.errors import InputError, UnclearError
from anyfolder.pixels.image_files import IMAGE_SUFFIXES
from anyfolder.wording import option

from .column_titles import (
    BOX_TITLES,
    GROUP_TITLE,
    IMAGE_TITLES,
    LABEL_TITLES,
    label_column,
    label_columns,
)
from .identity import Index
from .image_tree import Tree
from .json_tables import rows_in_json
from .named_folders import Folders, NamedFolders
from .split_columns import SplitColumn, fold_column, is_split_title, split_column
from .splits import Split, split_of
from .tables import FIRST_ROWS, OFF_CELLS, ON_CELLS, Row


@dataclass
class ImageTable:
    """A table with a column of images, or of folders of images.

    Attributes:
        file: the table.
        rows: the rows, including the first line if it is not a header.
        images: the column with the names of images or folders of images.
        folders: the folders that the table can name.
        within: the column with the folder of each image, if names alone are ambiguous.
        of_folders: whether the names are those of folders.
        as_numbers: whether the names are numbers that images or folders have with other zeros.
    """

    file: Path
    rows: list[Row]
    images: str
    folders: NamedFolders
    within: str = ''
    of_folders: bool = False
    as_numbers: bool = False

    def match(self, row: Row, index: Index, split: Split | None = None) -> Sequence[Path]:
        """The images of a row: one, all in a folder, or several if the name is ambiguous."""
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
        """The split column, see :func:`split_column`."""
        return split_column(self.file, self.rows)

    @cached_property
    def group_title(self) -> str:
        """The column of a group of images, such as the patient; empty without one.

        It is not the label column, and not equal in all rows.
        """
        label = label_column(self.others)
        named = [name for name in self.others if GROUP_TITLE.fullmatch(name) and name != label]
        several = len(named) == 1 and len({row[named[0]] for row in self.rows}) > 1
        return named[0] if several and self.has_header else ''

    @property
    def has_header(self) -> bool:
        """True if the table has column titles; otherwise the first row also serves as titles."""
        return self.rows[0][self.images] != self.images

    def stated_split(self, row: Row) -> Split | None:
        """The split in a row."""
        return self.splits.split_of_row(row) if self.splits else None

    @cached_property
    def others(self) -> list[str]:
        """The columns that may have labels."""
        folds = fold_column(self.rows)
        taken = (
            self.images, self.within, self.splits and self.splits.title, folds and folds.title
        )  # fmt: skip
        return [name for name in self.rows[0] if name not in taken and not is_split_title(name)]

    @cached_property
    def flags(self) -> list[str]:
        """The columns of 0 and 1, one for each class, if all other columns are such."""
        columns = self.others if self.has_header and len(self.others) > 1 else []
        named = not {*LABEL_TITLES}.isdisjoint(map(str.casefold, columns))
        cells = (row[name].casefold() for row in self.rows for name in columns)
        return columns if not named and all(cell in ON_CELLS + OFF_CELLS for cell in cells) else []

    @property
    def is_of_classes(self) -> bool:
        """True if there are class columns by their titles or values, not just a single column."""
        return bool(self.flags or label_columns(self.others))

    def labels(self) -> list[str]:
        """The label column, or the columns of 0 and 1, one for each class.

        Raises:
            InputError: if there are several columns, and none has a title for labels.
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
            f'{str(self.file)!r} has the columns {", ".join(self.rows[0])}, but none of '
            'them is called label; rename the one with the classes.',
            format='table',
            labels=[self.file],
        )


def find_table(tree: Tree, file: Path, folders: NamedFolders | None = None) -> ImageTable | None:
    """A table, if most of the first values in a column are names of images or their folders."""
    is_json = file.suffix.lower() == '.json'
    rows = rows_in_json(tree.contents.json(file)) if is_json else tree.contents.rows(file)
    folders = folders or NamedFolders(tree)
    tried = rows[:FIRST_ROWS]
    names = [name for name in (rows[0] if rows else ()) if name.casefold() not in LABEL_TITLES]

    def rank(name: str) -> tuple[bool, bool]:
        """The image column. Names with an image suffix are no row numbers, whatever their title."""
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
    """The table with a column of numbers that images or folders have with other zeros."""
    tried = table.rows[:FIRST_ROWS]
    named = [name for name in names if name.casefold() in IMAGE_TITLES]
    groups = [name for name in names if GROUP_TITLE.fullmatch(name)]
    # Under other titles, such as BraTS21ID, unique numbers are names.
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
    """True if the values of a column match something in most of these rows."""
    return 2 * sum(bool(row[column] and match(row[column])) for row in rows) > len(rows)


def _has_suffix(name: str) -> bool:
    return name.lower().endswith(IMAGE_SUFFIXES)


def _is_within(table: ImageTable, column: str, tree: Tree) -> bool:
    """True for a column of folders that distinguishes images of one name, such as video frames."""
    table = replace(table, within=column)
    found = [table.match(row, tree.index) for row in table.rows[:FIRST_ROWS]]
    return 2 * sum(len(images) == 1 for images in found) > len(found)
