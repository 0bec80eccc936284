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

# Columns about the image rather than about an object in it.
MISFIT = ('lines do not have the columns of the layout', 'correct them, or columns')
LABELS = {'class', 'classes', 'flags'}
OF_IMAGE = {'split', 'group', 'mask', 'image_width', 'image_height'}


@dataclass(slots=True)
class ImageRows:
    """The rows of tables for an image.

    Attributes:
        origin: the first of the lines, for messages.
        facts: the value of each column of :data:`OF_IMAGE`.
        labels: the rows with a class and no box.
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
        of_one: returns the image of a table that belongs to one image.
        named: returns the image that a table names.
        findings: collects rows that do not fit, and rows whose image is missing.

    Attributes:
        of_image: the rows of each image.
    """

    def __init__(
        self,
        layout: Layout,
        files: Sequence[PlacedFile],
        of_one: Callable[[PlacedFile], Path | None],
        named: Callable[[str, PlacedFile], Path | None],
        findings: Findings,
    ) -> None:
        self._of_one, self._named, self._findings = of_one, named, findings
        self.of_image: dict[Path, ImageRows] = {}
        # The images for each value of a column that joins tables.
        self._joined: dict[tuple[str, str], list[Path]] = defaultdict(list)
        tables = [(file, self._columns_of(layout, file)) for file in files]
        for file, columns in tables:
            if 'image' in columns.names:
                self._read_named(file, columns, columns.names & layout.joining)
        for file, columns in tables:
            if 'image' not in columns.names:
                keys = columns.names & layout.joining
                (self._read_joined if keys else self._read_own)(file, columns, keys)

    @staticmethod
    def _columns_of(layout: Layout, file: PlacedFile) -> Columns:
        if columns := layout.columns_of(file.place):
            return columns
        raise InputError(f'{layout.file!r}: columns has no entry for {file.place!r}; add it.')

    def _read_named(self, file: PlacedFile, columns: Columns, keys: set[str]) -> None:
        """Read a table that names an image in each row."""
        known: dict[str, Path | None] = {}
        for place, row in self._rows(file, columns):
            name = row['image']
            path = known[name] if name in known else known.setdefault(name, self._named(name, file))
            if path:
                self._start(path, place, file)
                self._add(path, place, row, columns)
                for key in keys:
                    self._joined[key, row[key]].append(path)

    def _read_own(self, file: PlacedFile, columns: Columns, _: set[str]) -> None:
        """Read a table of one image."""
        if path := self._of_one(file):
            self._start(path, str(file.path), file)
            for place, row in self._rows(file, columns):
                self._add(path, place, row, columns)

    def _read_joined(self, file: PlacedFile, columns: Columns, keys: set[str]) -> None:
        """Read a table whose rows have the key of an image in another table."""
        for place, row in self._rows(file, columns):
            found = next(
                (paths for key in keys if (paths := self._joined.get((key, row[key])))), ()
            )
            for path in found:
                self._add(path, place, row, columns)
            if not found:
                name = ', '.join(row[key] for key in keys)
                self._findings.lose('rows', file.path, f'{name}, {place}')

    def _rows(self, file: PlacedFile, columns: Columns) -> Iterator[tuple[str, Row]]:
        """The rows of a table; those that do not fit its columns are rejected."""
        for place, row in rows_in(file.path, columns):
            if row is None:
                self._findings.reject(*MISFIT, place)
            else:
                yield place, row

    def _start(self, path: Path, origin: str, file: PlacedFile) -> None:
        """The rows of an image. The path of the table may state its split and group."""
        if path not in self.of_image:
            fields = {name: file.fields[name] for name in OF_IMAGE & file.fields.keys()}
            self.of_image[path] = ImageRows(origin, fields)

    def _add(self, path: Path, place: str, row: Row, columns: Columns) -> None:
        of_image = self.of_image[path]
        for name in OF_IMAGE & row.keys():
            if row[name]:
                of_image.facts[name] = row[name]
        if columns.shape and all(row.get(name) for name in columns.shape):
            of_image.objects.append((place, row))
        elif not LABELS.isdisjoint(row):
            of_image.labels.append(row)
