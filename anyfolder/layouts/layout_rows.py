"""Collect the rows of a layout's tables for each image: classes, splits and objects."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from anyfolder.errors import InputError
from anyfolder.readers.findings import Findings

from .columns import Columns
from .layout import Layout
from .layout_files import MatchedFile
from .row_values import Row
from .table_rows import rows_in

# The fault of a line and its remedy, for `Findings.reject`.
ROW_MISFIT = ('lines do not have the columns of the layout', 'correct them, or columns')
CLASS_COLUMNS = {'class', 'classes', 'flags'}  # columns with classes
# Columns about the image rather than about an object in it.
IMAGE_COLUMNS = {'split', 'group', 'mask', 'image_width', 'image_height'}
# Fields of a table's path that are further parts of the group, such as group_sign.
FURTHER_GROUP = 'group_'
TWO_GROUPS = ('rows give an image two groups', 'keep one of them')


@dataclass(slots=True)
class ImageRows:
    """The rows of tables for an image.

    Attributes:
        origin: the position of the first row, or the table if it belongs to this image only; for
            messages.
        fields: the value of each column of :data:`IMAGE_COLUMNS`.
        group: the last value of the column ``group``, of which an image should have one.
        splits: all values of the column or the field ``split``; an image can have several.
        masks: all values of the column ``mask``, of which an image should have one.
        labels: the rows with a class column and no box or polygon.
        objects: the rows with a box or a polygon, each with its position for messages.
    """

    origin: str
    fields: dict[str, str] = field(default_factory=dict)
    group: str = ''
    splits: dict[str, None] = field(default_factory=dict)
    masks: dict[str, None] = field(default_factory=dict)
    labels: list[Row] = field(default_factory=list)
    objects: list[tuple[str, Row]] = field(default_factory=list)


class LayoutRows:
    """The rows of all tables by their image.

    There are three kinds of tables. A table has the column ``image``, which names the image of each
    row; or it has a column in common with such a table, by whose values the rows of both are
    joined; or it belongs to one image, whose fields equal those of the table's path.

    Args:
        layout: the layout with the columns.
        files: the tables.
        image_of_label_file: returns the image of a table that belongs to one image, or None.
        image_named: returns the image of a name in a table, or None.
        findings: collects rows that do not fit, and rows whose image is missing.

    Attributes:
        of_image: the rows of each image.
    """

    def __init__(
        self,
        layout: Layout,
        files: Sequence[MatchedFile],
        image_of_label_file: Callable[[MatchedFile], Path | None],
        image_named: Callable[[str, MatchedFile], Path | None],
        findings: Findings,
    ) -> None:
        self._image_of_label_file, self._image_named = image_of_label_file, image_named
        self._findings = findings
        self.of_image: dict[Path, ImageRows] = {}
        # The images, each once, by a column that joins tables and a value in it.
        self._joined: dict[tuple[str, str], dict[Path, None]] = defaultdict(dict)
        tables = [(file, self._columns_of(layout, file)) for file in files]
        # Tables that name images come first, since the others may be joined to them.
        for file, columns in tables:
            if 'image' in columns.names:
                self._read_with_images(file, columns, columns.names & layout.joining_columns)
        for file, columns in tables:
            if 'image' not in columns.names:
                if keys := columns.names & layout.joining_columns:
                    self._read_joined(file, columns, keys)
                else:
                    self._read_of_one_image(file, columns)

    @staticmethod
    def _columns_of(layout: Layout, file: MatchedFile) -> Columns:
        if columns := layout.columns_of(file.relative_path):
            return columns
        path = file.relative_path
        raise InputError(f'{layout.file!r}: columns has no entry for {path!r}; add it.')

    def _read_with_images(self, file: MatchedFile, columns: Columns, keys: set[str]) -> None:
        """Read a table that names an image in each row."""
        path_of: dict[str, Path | None] = {}  # many rows can name the same image
        for position, row in self._rows(file, columns):
            name = row.get('image', '')  # a line of JSON may lack it
            if name not in path_of:
                path_of[name] = self._image_named(name, file)
            if path := path_of[name]:
                self._start(path, position, file)
                self._add(path, position, row, columns)
                for key in keys:
                    if row.get(key):
                        self._joined[key, row[key]][path] = None

    def _read_of_one_image(self, file: MatchedFile, columns: Columns) -> None:
        """Read a table of one image."""
        if path := self._image_of_label_file(file):
            self._start(path, str(file.path), file)
            for position, row in self._rows(file, columns):
                self._add(path, position, row, columns)

    def _read_joined(self, file: MatchedFile, columns: Columns, keys: set[str]) -> None:
        """Read a table whose rows have the key of an image in another table."""
        for position, row in self._rows(file, columns):
            values = {key: row[key] for key in sorted(keys) if row.get(key)}
            found = map(self._joined.get, values.items())
            images = next(filter(None, found), ())
            for path in images:
                self._add(path, position, row, columns)
            if not images:
                example = ', '.join([*values.values(), position])
                self._findings.warn_missing_image('rows', file.path, example)

    def _rows(self, file: MatchedFile, columns: Columns) -> Iterator[tuple[str, Row]]:
        """The rows of a table; those that do not fit its columns are rejected."""
        for position, row in rows_in(file.path, columns):
            if row is None:
                self._findings.reject(*ROW_MISFIT, position)
            else:
                yield position, row

    def _start(self, path: Path, origin: str, file: MatchedFile) -> None:
        """Begin the rows of an image. Fields in the table's path, such as its split, are kept."""
        if path not in self.of_image:
            fields = {
                name: text
                for name, text in file.fields.items()
                if name in IMAGE_COLUMNS or name.startswith(FURTHER_GROUP)
            }
            self.of_image[path] = ImageRows(origin, fields)
        if split := file.fields.get('split'):
            self.of_image[path].splits[split] = None

    def _add(self, path: Path, position: str, row: Row, columns: Columns) -> None:
        """Add a row to those of an image, which :meth:`_start` has begun."""
        rows = self.of_image[path]
        if row.get('group') and rows.group not in ('', row['group']):
            where = f'{rows.group!r} and {row["group"]!r}, {position}'
            self._findings.reject(*TWO_GROUPS, where)
        rows.group = row.get('group') or rows.group
        for name in IMAGE_COLUMNS & row.keys():
            if row[name]:
                rows.fields[name] = row[name]
        if row.get('split'):
            rows.splits[row['split']] = None
        if row.get('mask'):
            rows.masks[row['mask']] = None
        if columns.shape and all(row.get(name) for name in columns.shape):
            rows.objects.append((position, row))
        elif not CLASS_COLUMNS.isdisjoint(row):
            rows.labels.append(row)
