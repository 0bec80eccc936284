"""Read the rows of tables whose columns a layout names.

A table may be a text file with any common separator, with or without a header, or JSONL.
"""

import csv
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from anyfolder.errors import InputError, rejecting
from anyfolder.readers.tables import read_objects
from anyfolder.text import lines_in, read_text

from .columns import INNER_KEY, Columns
from .row_values import Row, check_numbers, with_classes
from .table_form import find_form


def rows_in(file: Path, columns: Columns) -> Iterator[tuple[str, Row | None]]:
    """The rows of a table, each with its position for messages; None if a row does not fit.

    Raises:
        InputError: if its header lacks a title, if no line has such columns, or if it exceeds a
            limit or is not a table.
    """
    if file.suffix.lower() == '.jsonl':
        yield from _rows_in_jsonl(file, columns)
        return
    lines = lines_in(read_text(file), file)
    if not any(map(str.strip, lines)):
        return
    # An error of csv is, for example, a quote that never ends.
    with rejecting(f'{str(file)!r} is not a table', 'correct it', (csv.Error,)):
        form = find_form(lines, file, columns)
        for number, values in form.values(lines):
            yield f'line {number} of {file}', form.row(values)


def _rows_in_jsonl(file: Path, columns: Columns) -> Iterator[tuple[str, Row | None]]:
    """The rows of a JSONL file: titles are keys, or ``outer.inner`` for keys of an inner object.

    A row lacks the columns whose key is missing or null.
    """
    if columns.order:
        raise InputError(
            f'{str(file)!r} has keys rather than an order of values; write columns as names and '
            'keys, as in columns: {image: file_name}.'
        )
    for number, content in enumerate(read_objects(file), 1):
        texts = {
            name: text
            for name, title in (columns.titles or {}).items()
            if (text := _text_at(content, title)) is not None
        }
        row = check_numbers(texts, may_be_empty=True)
        # A box needs all of its numbers; without any, the image has no object.
        if row and len({bool(row.get(name)) for name in columns.shape or ()}) > 1:
            row = None
        if row is not None and columns.class_titles:
            row = with_classes(
                row, {title: _text_at(content, title) or '' for title in columns.class_titles}
            )
        yield f'line {number} of {file}', row


def _text_at(content: Mapping[str, Any], title: str) -> str | None:
    """The value of a key, or of ``outer.inner``, as text; None if it is missing or null."""
    value = content.get(title)
    if title not in content:
        outer = content.get(INNER_KEY.sub('', title))
        if isinstance(outer, dict):
            value = outer.get(title.rpartition('.')[2])
    if value is None:
        return None
    return value.strip() if isinstance(value, str) else json.dumps(value)
