"""Read tables: CSV with any separator and with comments, or lines of JSON."""

import csv
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from anyfolder.bounded import json_in
from anyfolder.errors import InputError, rejecting
from anyfolder.limits import check_limit
from anyfolder.text import lines_in, read_lines, read_text

TABLE_SUFFIXES = ('.csv', '.tsv', '.jsonl')
SEPARATORS = ',;\t|'  # separators of columns
ON_CELLS, OFF_CELLS = ('1', '1.0', 'true'), ('0', '0.0', 'false')  # in lower case
FIRST_ROWS = 20  # rows from which the separator and the meaning of columns are inferred
# Lines before the header; the header of VIA 1 begins with #filename, which is no comment.
LINE_ABOVE = re.compile(r'\s*$|#(?!filename\b)|//|"?sep=(.)"?\s*$', re.IGNORECASE)

NUMBER = re.compile(r'[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?')  # in a cell
# A number of a class, a mask value or an image. Python converts no more than 4300 digits.
WHOLE_NUMBER = re.compile(r'\d{1,18}')

Row = Mapping[str, str]


def read_table(file: Path, max_lines: int | None = None) -> list[list[str]]:
    """The lines of a CSV file, the header first.

    Args:
        file: the file. Its first lines can be comments or Excel's ``sep=;``.
        max_lines: the maximum number of lines. Default: all.

    Raises:
        InputError: if it is not a table, or exceeds a limit.
    """
    lines = lines_in(read_text(file), file, keepends=True)[:max_lines]
    separators = f'{SEPARATORS} ' if file.suffix.lower() == '.txt' else SEPARATORS
    while lines and (above := LINE_ABOVE.match(lines[0])):
        separators = above[1] or separators
        del lines[0]

    def rows_by(separator: str, lines: Sequence[str]) -> list[list[str]]:
        reader = csv.reader(lines, delimiter=separator, skipinitialspace=True)
        return [line for line in reader if line]

    # An error of csv is, for example, a quote that never ends.
    with rejecting(f'{str(file)!r} is not a table', 'correct it', (csv.Error,)):
        # The separator with which the shortest of the first rows has the most values.
        separator = max(
            separators, key=lambda one: min(map(len, rows_by(one, lines[:FIRST_ROWS])), default=0)
        )
        check_limit(file, 'cells in a table', sum(1 + line.count(separator) for line in lines))
        rows = rows_by(separator, lines)
    if separator == ' ':  # the last column may contain blanks
        width = min(map(len, rows[:FIRST_ROWS]), default=1)
        rows = [[*row[: width - 1], ' '.join(row[width - 1 :])] for row in rows]
    return [[value.strip() for value in row] for row in rows]


def read_rows(file: Path) -> list[Row]:
    """The rows by column title, without untitled columns, such as an index.

    A title that occurs again gets the number of its column: ``label 3``.

    Raises:
        InputError: see :func:`read_table`, and for a row with more values than the header.
    """
    if file.suffix.lower() == '.jsonl':
        objects = read_objects(file)
        names = dict.fromkeys(key for row in objects for key in row)
        return [{name: text_in_cell(row.get(name)) for name in names} for row in objects]
    header, *table = read_table(file) or [[]]
    for number, line in enumerate(table, 2):
        if further := [value for value in line[len(header) :] if value]:
            raise InputError(
                f'row {number} of {str(file)!r} has more values than the header, such as '
                f'{further[0]!r}; quote values with a comma, or add a title for the column.'
            )
    columns = {
        name if header.index(name) == i else f'{name} {i}': i
        for i, name in enumerate(header)
        if name and not name.casefold().startswith('unnamed:')
    }
    return [
        {name: line[i] if i < len(line) else '' for name, i in columns.items()} for line in table
    ]


def read_objects(file: Path) -> list[dict[str, Any]]:
    """The lines of a JSONL file.

    Raises:
        InputError: if a line is not a JSON object.
    """
    what = f'{str(file)!r} does not have a JSON object on each line'
    with rejecting(what, 'correct or remove it', (ValueError, TypeError)):
        return [dict(json_in(line, file)) for line in read_lines(file)]


def text_in_cell(value: Any) -> str:
    """A JSON value as in a CSV file; several labels are joined by ``|``."""
    if isinstance(value, list) and not any(isinstance(item, (list, dict)) for item in value):
        return '|'.join(str(item) for item in value if item is not None)
    if isinstance(value, (list, dict)):
        return json.dumps(value)
    return '' if value is None else str(value)
