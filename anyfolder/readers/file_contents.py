"""The contents of the files of a folder, each parsed only once."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from anyfolder.bounded import read_json, read_xml, read_yaml
from anyfolder.errors import named_line, rejecting
from anyfolder.text import read_lines

from .tables import Row, read_rows


class FileContents:
    """The contents of files. All methods raise ``InputError`` for a damaged file."""

    def __init__(self) -> None:
        self._cache: dict[tuple[str, Path], Any] = {}

    def json(self, file: Path) -> Any:
        """The value of a JSON file, without the pixels that LabelMe stores in it."""
        if ('json', file) not in self._cache:
            content = read_json(file)
            if isinstance(content, dict):
                content.pop('imageData', None)
            self._cache['json', file] = content
        return self._cache['json', file]

    def yaml(self, file: Path) -> Any:
        """The value of a YAML file, whose scalars stay text, since a class may be called ``no``."""
        if ('yaml', file) not in self._cache:
            self._cache['yaml', file] = read_yaml(file, as_text=True)
        return self._cache['yaml', file]

    def xml(self, file: Path) -> Any:
        """The root of an XML file."""
        if ('xml', file) not in self._cache:
            self._cache['xml', file] = read_xml(file)
        return self._cache['xml', file]

    def rows(self, file: Path) -> list[Row]:
        """The rows of a table, see :func:`~.tables.read_rows`."""
        if ('rows', file) not in self._cache:
            self._cache['rows', file] = read_rows(file)
        return [*self._cache['rows', file]]  # a copy, since `find_table` inserts a row

    def lines(self, file: Path) -> list[str]:
        """The lines of a text file, see :func:`~anyfolder.text.read_lines`."""
        if ('lines', file) not in self._cache:
            self._cache['lines', file] = read_lines(file)
        return self._cache['lines', file]


def rejecting_malformed(file: Path, what: str, format: str) -> AbstractContextManager[None]:
    """A context in which errors about missing or wrong values become an ``InputError``.

    Args:
        file: the file whose content is parsed in the context.
        what: the part of it that may be malformed: ``'an image or a box'``.
        format: the name of its format.
    """
    return rejecting(
        f'{str(file)!r} has {what} that is invalid for the format {format}',
        'correct it',
        (KeyError, TypeError, ValueError, AttributeError, IndexError),
        named_line,
    )
