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
    GROUP_TITLE_PATTERN,
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
        image_column: the column with the names of images or folders of images.
        folders: the folders that the table can name.
        folder_column: the column with the folder of each image, if names alone are ambiguous.
        of_folders: whether the names are folders of images, not images.
        are_numbers: whether the names are numbers that images or folders have with other zeros.
    """

    file: Path
    rows: list[Row]
    image_column: str
    folders: NamedFolders
    folder_column: str = ''
    of_folders: bool = False
    are_numbers: bool = False

    def match(self, row: Row, index: Index, split: Split | None = None) -> Sequence[Path]:
        """The images that the name in a row can refer to: one, none, or several if ambiguous.

        Empty if the rows name folders, see :meth:`match_folders`.
        """
        name = '' if self.of_folders else row[self.image_column]
        if self.folder_column:
            name = f'{row[self.folder_column]}/{name}'
        match = index.match_number if self.are_numbers else index.match
        return match(name, self.file, split) if name else []

    def match_folders(self, row: Row) -> Sequence[Folders]:
        """The folders that the name in a row can refer to, if it is not that of an image."""
        numbered = self.are_numbers and self.of_folders
        match = self.folders.match_number if numbered else self.folders.match
        return match(row[self.image_column]) if row[self.image_column] else ()

    @cached_property
    def splits(self) -> SplitColumn | None:
        """The split column, see :func:`split_column`."""
        return split_column(self.file, self.rows)

    @cached_property
    def group_title(self) -> str:
        """The column of a group of images, such as the patient; empty without one.

        It is not the label column, and not equal in all rows.
        """
        label = label_column(self.other_columns)
        named = [
            name
            for name in self.other_columns
            if GROUP_TITLE_PATTERN.fullmatch(name) and name != label
        ]
        several = len(named) == 1 and len({row[named[0]] for row in self.rows}) > 1
        return named[0] if several and self.has_header else ''

    @property
    def has_header(self) -> bool:
        """True if the table has column titles; otherwise the first row also serves as titles."""
        return self.rows[0][self.image_column] != self.image_column

    def stated_split(self, row: Row) -> Split | None:
        """The split that a row states, or None."""
        return self.splits.split_of_row(row) if self.splits else None

    @cached_property
    def other_columns(self) -> list[str]:
        """The columns that may have labels."""
        folds = fold_column(self.rows)
        taken = (
            self.image_column,
            self.folder_column,
            self.splits and self.splits.title,
            folds and folds.title,
        )
        return [name for name in self.rows[0] if name not in taken and not is_split_title(name)]

    @cached_property
    def flag_columns(self) -> list[str]:
        """The columns of 0 and 1, one for each class, if all columns that may have labels are such.

        Empty if one of them has a title for labels.
        """
        columns = self.other_columns if self.has_header and len(self.other_columns) > 1 else []
        has_label_title = not {*LABEL_TITLES}.isdisjoint(map(str.casefold, columns))
        cells = (row[name].casefold() for row in self.rows for name in columns)
        if has_label_title or not all(cell in ON_CELLS + OFF_CELLS for cell in cells):
            return []
        return columns

    @property
    def is_of_classes(self) -> bool:
        """True if columns have classes by their titles or values, not just as the only column."""
        return bool(self.flag_columns or label_columns(self.other_columns))

    def labels(self) -> list[str]:
        """The label column, or the columns of 0 and 1, one for each class.

        Raises:
            InputError: if there are boxes, or several columns of which none has a title for labels.
        """
        if boxes := BOX_TITLES & {name.casefold() for name in self.other_columns}:
            raise InputError(
                f'{str(self.file)!r} has boxes in the column {boxes.pop()!r}; '
                f'give {option("task", "detection")}.'
            )
        if self.flag_columns:
            return self.flag_columns
        if label := label_column(self.other_columns):
            return [label]
        raise UnclearError(
            f'{str(self.file)!r} has the columns {", ".join(self.rows[0])}, but none of '
            'them is called label; rename the one with the classes.',
            format='table',
            labels=[self.file],
        )


def find_table(tree: Tree, file: Path, folders: NamedFolders | None = None) -> ImageTable | None:
    """A table, if most of the first values in a column are names of images or their folders.

    None for other tables.
    """
    is_json = file.suffix.lower() == '.json'
    rows = rows_in_json(tree.contents.json(file)) if is_json else tree.contents.rows(file)
    folders = folders or NamedFolders(tree)
    first_rows = rows[:FIRST_ROWS]
    names = [name for name in (rows[0] if rows else ()) if name.casefold() not in LABEL_TITLES]

    def rank(name: str) -> tuple[bool, int]:
        """Order columns by how likely they name images.

        Values with the suffix of an image come first: they are not row numbers, whatever the title.
        Of several such columns, each names an image, so that the table's own order decides.
        """
        title_rank = _title_rank(name)
        if _most_match(_has_suffix, name, first_rows):
            return False, int(title_rank == len(IMAGE_TITLES))
        return True, title_rank

    for column in sorted(names, key=rank):
        matches = [tree.index.match(row[column], file) for row in first_rows if row[column]]
        if 2 * sum(map(bool, matches)) > len(first_rows):
            table = ImageTable(file, rows, column, folders)
            if 2 * sum(len(images) > 1 for images in matches) > len(first_rows):
                # Most names are ambiguous without their folder, or are those of folders.
                others = (
                    name for name in names if not all(split_of(row[name]) for row in first_rows)
                )
                table.folder_column = next(
                    (name for name in others if _is_folder_column(table, name, tree)), ''
                )
                table.of_folders = not table.folder_column and _most_match(
                    folders.match, column, first_rows
                )
            if tree.index.match(column, file):  # the first line is not a header, but a row
                rows.insert(0, {name: name for name in rows[0]})
            return table
    for column in names:
        if _most_match(folders.match, column, first_rows):
            return ImageTable(file, rows, column, folders, of_folders=True)
    return _find_number_column(
        tree, ImageTable(file, rows, image_column='', folders=folders), names
    )


def _find_number_column(tree: Tree, table: ImageTable, names: Sequence[str]) -> ImageTable | None:
    """The table with a column of numbers that images or folders have with other zeros.

    None without such a column.
    """
    first_rows = table.rows[:FIRST_ROWS]
    named = sorted((name for name in names if name.casefold() in IMAGE_TITLES), key=_title_rank)
    groups = [name for name in names if GROUP_TITLE_PATTERN.fullmatch(name)]
    # Under other titles, such as BraTS21ID, unique numbers are names.
    keys = [name for name in names if len({row[name] for row in table.rows}) == len(table.rows)]

    def images(name: str) -> Sequence[Path]:
        return tree.index.match_number(name, table.file)

    def one_image(name: str) -> bool:
        return len(images(name)) == 1

    for columns, match, of_folders in (
        (named, one_image, False),
        ([*groups, *named, *keys], table.folders.match_number, True),
        (named, images, False),  # ambiguous numbers, which are reported row by row
    ):
        for column in columns:
            if _most_match(match, column, first_rows):
                return replace(table, image_column=column, of_folders=of_folders, are_numbers=True)
    return None


def _most_match(match: Callable[[str], object], column: str, rows: Sequence[Row]) -> bool:
    """True if the values of a column match something in most of these rows."""
    return 2 * sum(bool(row[column] and match(row[column])) for row in rows) > len(rows)


def _title_rank(title: str) -> int:
    """The place of a title in :data:`IMAGE_TITLES`, the likeliest first; other titles are last."""
    title = title.casefold()
    return IMAGE_TITLES.index(title) if title in IMAGE_TITLES else len(IMAGE_TITLES)


def _has_suffix(name: str) -> bool:
    return name.lower().endswith(IMAGE_SUFFIXES)


def _is_folder_column(table: ImageTable, column: str, tree: Tree) -> bool:
    """True for a column of folders that distinguishes images of one name, such as video frames."""
    table = replace(table, folder_column=column)
    matches = [table.match(row, tree.index) for row in table.rows[:FIRST_ROWS]]
    return 2 * sum(len(images) == 1 for images in matches) > len(matches)
