"""Rows of tables whose columns a layout names, with or without a header, with any separator."""

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from anyfolder.errors import InputError
from anyfolder.readers.label_structures import text_of_key
from anyfolder.readers.tables import NUMBER, read_objects
from anyfolder.text import read_text

from .columns import LISTS, NOTHING, NUMBERS, REST, Columns
from .nearest import did_you_mean

MARKS = (',', ';', '\t', '|', ' ')  # separators of values; a space matches any number of spaces
MAX_ABOVE = 10  # maximum number of lines above the header or the first row
COMMENT = re.compile(r'#|//|"?sep=.?"?\s*$', re.IGNORECASE)
KEYED = re.compile(r'\.[^.]+$')  # after a title, the key of a value in the JSON of its column
OF_NUMBERS = re.compile(r'[\d\s.,;:eE+\-\[\]()]*')  # a list of numbers
ON, OFF = ('1', '1.0', 'true'), ('0', '0.0', 'false', '-1', '-1.0', '')  # grants, denies a class

Row = Mapping[str, Any]  # the text of each column, and the flags by their names in ``classes``


class TableForm(NamedTuple):
    """How the lines of a table are read.

    Attributes:
        start: the first line with a row.
        mark: the separator of values.
        places: the index of the value of each column.
        flags: the index of the value of each class with a column.
        width: the number of values.
        rest: for further values: ``'ignored'`` if they are not needed, ``'last'`` if they belong to
            the last column, or empty.
        below_header: whether a line may lack its last values, and numbers may be empty.
        keys: for columns whose values are JSON or Python dicts, the key whose value counts.
    """

    start: int
    mark: str
    places: Mapping[str, int]
    flags: Mapping[str, int]
    width: int
    rest: str = ''
    below_header: bool = False
    keys: Mapping[str, str] = {}

    def row(self, values: list[str]) -> Row | None:
        """The values of a line by column; None if they do not fit."""
        while len(values) > self.width and not values[-1].strip():
            values = values[:-1]  # VisDrone's lines end with a comma
        if len(values) > self.width and self.rest == 'last':
            head = self.width - 1
            values = [*values[:head], ' '.join(values[head:])]
        if self.below_header:
            values = [*values, *[''] * (self.width - len(values))]
        if len(values) < self.width or (len(values) > self.width and not self.rest):
            return None
        row: dict[str, Any] = {name: values[i].strip() for name, i in self.places.items()}
        for name, key in self.keys.items():
            row[name] = text_of_key(row[name], key)
        numbers = NUMBERS & row.keys()
        if self.below_header and not any(row[name] for name in numbers):
            row = {name: value for name, value in row.items() if name not in numbers}
        elif not all(NUMBER.fullmatch(row[name]) for name in numbers):
            return None
        if not all(OF_NUMBERS.fullmatch(row.get(name, '')) for name in LISTS):
            return None
        if self.flags:
            said = {name: values[i].strip().casefold() for name, i in self.flags.items()}
            if not {*said.values()} <= {*ON, *OFF}:
                return None
            row['classes'] = tuple(name for name, value in said.items() if value in ON)
        return row


def rows_in(file: Path, columns: Columns) -> Iterator[tuple[str, Row | None]]:
    """The rows of a table, each with its position for messages; None if a row does not fit.

    Raises:
        InputError: if its header lacks a title, or if no line has such columns.
    """
    if file.suffix.lower() == '.jsonl':
        yield from _objects(file, columns)
        return
    lines = read_text(file).splitlines()
    if not any(map(str.strip, lines)):
        return
    form = (_bare if columns.order else _below_header)(lines, file, columns)
    for number, values in _values(lines, form):
        yield f'line {number} of {file}', form.row(values)


def _values(lines: Sequence[str], form: TableForm) -> Iterator[tuple[int, list[str]]]:
    """The values of each non-empty line, and its number."""
    rest = lines[form.start :]
    if form.mark == ' ':
        found = ((number, line.split()) for number, line in enumerate(rest, form.start + 1))
    else:
        reader = csv.reader(rest, delimiter=form.mark, skipinitialspace=True)
        found = ((form.start + reader.line_num, values) for values in reader)
    return ((number, values) for number, values in found if any(map(str.strip, values)))


def _split(line: str, mark: str) -> list[str]:
    if mark == ' ':
        return line.split()
    return next(csv.reader([line], delimiter=mark, skipinitialspace=True), [])


def _bare(lines: Sequence[str], file: Path, columns: Columns) -> TableForm:
    """The form of a table without a header, by its first line that fits."""
    order, rest = columns.order, ''
    if order[-1] == REST:
        order, rest = order[:-1], 'ignored'
    places = {name: i for i, name in enumerate(order) if name != NOTHING}
    for start, line in enumerate(islice(lines, MAX_ABOVE)):
        for mark in MARKS if line.strip() and not COMMENT.match(line) else ():
            is_text = order[-1] in LISTS or (mark == ' ' and order[-1] not in NUMBERS)
            further = rest or ('last' if is_text else '')
            form = TableForm(start, mark, places, {}, len(order), further)
            if form.row(_split(line, mark)) is not None:
                return form
    raise InputError(
        f'{str(file)!r} has no line with the columns {", ".join(columns.order)}, but lines such as '
        f'{next(filter(str.strip, lines))!r}; correct columns, where {NOTHING} is an unused value '
        f'and {REST} are all further values.'
    )


def _below_header(lines: Sequence[str], file: Path, columns: Columns) -> TableForm:
    """The form of a table by its header, the first line that has the titles."""
    titles = columns.titles or {}
    wanted, best = {*titles.values(), *columns.flags}, list[str]()
    for start, line in enumerate(islice(lines, MAX_ABOVE)):
        for mark in MARKS if line.strip() and not COMMENT.match(line) else ():
            header = [title.strip() for title in _split(line, mark)]
            keyed = {title: KEYED.sub('', title) for title in wanted.difference(header)}
            if {*header}.issuperset([*keyed.values(), *columns.flags]):
                found = {name: keyed.get(title, title) for name, title in titles.items()}
                places = {name: header.index(title) for name, title in found.items()}
                flags = {title: header.index(title) for title in columns.flags}
                keys = {
                    name: title[len(found[name]) + 1 :]
                    for name, title in titles.items()
                    if title in keyed
                }
                return TableForm(start + 1, mark, places, flags, len(header), '', True, keys)
            best = max(best, header, key=lambda one: (len(wanted.intersection(one)), len(one)))
    lacking = min(wanted.difference(best))
    raise InputError(
        f'{str(file)!r} has no column {lacking!r}, but {", ".join(map(repr, best[:20]))}'
        f'{did_you_mean(lacking, best)}'
    )


def _objects(file: Path, columns: Columns) -> Iterator[tuple[str, Row | None]]:
    """The objects of a JSONL file by their keys."""
    for number, found in enumerate(read_objects(file), 1):
        row = {}
        for name, title in (columns.titles or {}).items():
            value = found.get(title)
            if title not in found and isinstance(outer := found.get(KEYED.sub('', title)), dict):
                value = outer.get(title.rpartition('.')[2])
            if value is not None:
                row[name] = value if isinstance(value, str) else json.dumps(value)
        yield f'line {number} of {file}', row
