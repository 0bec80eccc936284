"""The rows of a layout's tables by image: classes, splits and objects."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from anyfolder.errors import InputError
from anyfolder.readers.findings import Findings

from .columns import Columns
from .layout import Layout
from .layout_files import PlacedFile
from .table_rows import Row, rows_in

MISFIT = ('lines do not have the columns of the layout', 'correct them, or columns')  # a finding
LABELS = {'class', 'classes', 'flags'}  # columns with classes
# Columns about the image rather than about an object in it.
OF_IMAGE = {'split', 'group', 'mask', 'image_width', 'image_height'}


@dataclass(slots=True)
class ImageRows:
    """The rows of tables for an image.

    Attributes:
        origin: the first of the lines, for messages.
        facts: the value of each column of :data:`OF_IMAGE`.
        labels: the rows with a class column and no box.
        objects: the rows with a box or a polygon, each with its position for messages.
    """

    origin: str
    facts: dict[str, str] = field(default_factory=dict)
    labels: list[Row] = field(default_factory=list)
    objects: list[tuple[str, Row]] = field(default_factory=list)


class LayoutRows:
    """The rows of all tables by their image.

    A table names an image in each row, belongs to the image that has the fields of its file, or has
    a column in common with a table that names images.

    Args:
        layout: the layout with the columns.
        files: the tables.
        image_of_label_file: returns the image of a table that belongs to one image.
        image_named: returns the image that a table names.
        findings: collects rows that do not fit, and rows whose image is missing.

    Attributes:
        of_image: the rows of each image.
    """

    def __init__(
        self,
        layout: Layout,
        files: Sequence[PlacedFile],
        image_of_label_file: Callable[[PlacedFile], Path | None],
        image_named: Callable[[str, PlacedFile], Path | None],
        findings: Findings,
    ) -> None:
        self._image_of_label_file, self._image_named = image_of_label_file, image_named
        self._findings = findings
        self.of_image: dict[Path, ImageRows] = {}
        # The images for each column that joins tables, and each value in it.
        self._joined: dict[tuple[str, str], list[Path]] = defaultdict(list)
        tables = [(file, self._columns_of(layout, file)) for file in files]
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
    def _columns_of(layout: Layout, file: PlacedFile) -> Columns:
        if columns := layout.columns_of(file.relative_path):
            return columns
        path = file.relative_path
        raise InputError(f'{layout.file!r}: columns has no entry for {path!r}; add it.')

    def _read_with_images(self, file: PlacedFile, columns: Columns, keys: set[str]) -> None:
        """Read a table that names an image in each row."""
        path_of: dict[str, Path | None] = {}
        for position, row in self._rows(file, columns):
            name = row['image']
            if name not in path_of:
                path_of[name] = self._image_named(name, file)
            if path := path_of[name]:
                self._start(path, position, file)
                self._add(path, position, row, columns)
                for key in keys:
                    self._joined[key, row[key]].append(path)

    def _read_of_one_image(self, file: PlacedFile, columns: Columns) -> None:
        """Read a table of one image."""
        if path := self._image_of_label_file(file):
            self._start(path, str(file.path), file)
            for position, row in self._rows(file, columns):
                self._add(path, position, row, columns)

    def _read_joined(self, file: PlacedFile, columns: Columns, keys: set[str]) -> None:
        """Read a table whose rows have the key of an image in another table."""
        for position, row in self._rows(file, columns):
            images = next(
                (paths for key in keys if (paths := self._joined.get((key, row[key])))), ()
            )
            for path in images:
                self._add(path, position, row, columns)
            if not images:
                name = ', '.join(row[key] for key in keys)
                self._findings.warn_missing_image('rows', file.path, f'{name}, {position}')

    def _rows(self, file: PlacedFile, columns: Columns) -> Iterator[tuple[str, Row]]:
        """The rows of a table; those that do not fit its columns are rejected."""
        for position, row in rows_in(file.path, columns):
            if row is None:
                self._findings.reject(*MISFIT, position)
            else:
                yield position, row

    def _start(self, path: Path, origin: str, file: PlacedFile) -> None:
        """Begin the rows of an image at its first row. The table's path may state its split."""
        if path not in self.of_image:
            fields = {name: file.fields[name] for name in OF_IMAGE & file.fields.keys()}
            self.of_image[path] = ImageRows(origin, fields)

    def _add(self, path: Path, position: str, row: Row, columns: Columns) -> None:
        """Add a row to those of an image, which :meth:`_start` has begun."""
        rows = self.of_image[path]
        for name in OF_IMAGE & row.keys():
            if row[name]:
                rows.facts[name] = row[name]
        if columns.shape and all(row.get(name) for name in columns.shape):
            rows.objects.append((position, row))
        elif not LABELS.isdisjoint(row):
            rows.labels.append(row)
