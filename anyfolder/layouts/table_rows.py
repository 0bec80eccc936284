"""Read the rows of tables whose columns a layout names.

A table may be a text file with any common separator, with or without a header, or JSONL. Which
lines are the heading and which separator is used is found out from its first lines.
"""

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from anyfolder.errors import InputError, rejecting
from anyfolder.readers.label_structures import text_of_key
from anyfolder.readers.tables import NUMBER, read_objects
from anyfolder.text import lines_in, read_text

from .columns import IGNORED_REST, NOTHING, NUMBER_COLUMNS, NUMBER_GROUPS, TAKE_REST, Columns
from .nearest import did_you_mean

SEPARATORS = (',', ';', '\t', '|', ' ')  # between values; a space is any number of spaces
FIRST_LINES = 10  # the header, or the first row that fits, is in one of these lines
COMMENT = re.compile(r'#|//|"?sep=.?"?\s*$', re.IGNORECASE)
INNER_KEY = re.compile(r'\.[^.]+$')  # in `box.x`, the key in the JSON values of the column `box`
NUMBER_LIST = re.compile(r'[\d\s.,;:eE+\-\[\]()]*')  # a list of numbers
# Flags of an image that has a class, and of one that does not.
ON, OFF = ('1', '1.0', 'true'), ('0', '0.0', 'false', '-1', '-1.0', '')

# The text of each column by its name. `classes` may also be a tuple of the names of those classes
# whose own column has a 1.
Row = Mapping[str, Any]


class TableForm(NamedTuple):
    """How the lines of a table are read.

    Attributes:
        start: the index of the first line with a row.
        separator: the separator of values.
        indices: the index of the value of each column.
        class_indices: the index of the value of each class that has a column of 0 and 1.
        width: the number of values.
        extra_values: what values beyond ``width`` are: ``'ignored'``, or ``'last'`` if they belong
            to the last column. Empty: such a line does not fit.
        below_header: whether the table has a header. A line below it may lack its last values, and
            its numbers may be empty.
        keys: for columns whose values are JSON or Python dicts, the key whose value is taken.
    """

    start: int
    separator: str
    indices: Mapping[str, int]
    class_indices: Mapping[str, int]
    width: int
    extra_values: str = ''
    below_header: bool = False
    keys: Mapping[str, str] = {}

    def row(self, values: list[str]) -> Row | None:
        """The values of a line by column; None if they do not fit, for example in their number."""
        while len(values) > self.width and not values[-1].strip():
            values = values[:-1]  # VisDrone's lines end with a comma
        if len(values) > self.width and self.extra_values == 'last':
            head = self.width - 1
            values = [*values[:head], ' '.join(values[head:])]
        if self.below_header:
            values = [*values, *[''] * (self.width - len(values))]
        if len(values) < self.width or (len(values) > self.width and not self.extra_values):
            return None
        cells = {name: values[i].strip() for name, i in self.indices.items()}
        for name, key in self.keys.items():
            cells[name] = text_of_key(cells[name], key)
        row = _check_numbers(cells, may_be_empty=self.below_header)
        if row is None or not all(NUMBER_LIST.fullmatch(row.get(name, '')) for name in TAKE_REST):
            return None
        if self.class_indices:
            return _with_classes(row, {name: values[i] for name, i in self.class_indices.items()})
        return row


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
        if columns.order:
            form = _form_without_header(lines, file, columns)
        else:
            form = _form_by_header(lines, file, columns)
        for number, values in _values(lines, form):
            yield f'line {number} of {file}', form.row(values)


def _values(lines: Sequence[str], form: TableForm) -> Iterator[tuple[int, list[str]]]:
    """The values of each non-empty line, and its number."""
    body = lines[form.start :]
    if form.separator == ' ':
        numbered = ((number, line.split()) for number, line in enumerate(body, form.start + 1))
    else:
        reader = csv.reader(body, delimiter=form.separator, skipinitialspace=True)
        numbered = ((form.start + reader.line_num, values) for values in reader)
    return ((number, values) for number, values in numbered if any(map(str.strip, values)))


def _values_of_line(line: str, separator: str) -> list[str]:
    """The values of a single line, as :func:`_values` divides it."""
    if separator == ' ':
        return line.split()
    return next(csv.reader([line], delimiter=separator, skipinitialspace=True), [])


def _may_begin(line: str) -> bool:
    """False for an empty line or a comment above a table."""
    return bool(line.strip()) and not COMMENT.match(line)


def _form_without_header(lines: Sequence[str], file: Path, columns: Columns) -> TableForm:
    """The form of a table without a header, by its first line that fits."""
    order, extra_values = columns.order, ''
    if order[-1] == IGNORED_REST:
        order, extra_values = order[:-1], 'ignored'
    indices = {name: i for i, name in enumerate(order) if name != NOTHING}
    for start, line in enumerate(islice(lines, FIRST_LINES)):
        if not _may_begin(line):
            continue
        fitting: list[TableForm] = []
        for separator in SEPARATORS:
            # A last column that is a list or a name takes all further values, since these can
            # contain the separator.
            is_text = order[-1] in TAKE_REST or (
                separator == ' ' and order[-1] not in NUMBER_COLUMNS
            )
            further = extra_values or ('last' if is_text else '')
            form = TableForm(
                start, separator, indices, class_indices={}, width=len(order), extra_values=further
            )
            values = _values_of_line(line, separator)
            if form.row(values) is None:
                continue
            # A whole line is one value by any separator that it lacks, but `image, ...` has more.
            if len(values) > 1 or extra_values != 'ignored':
                return form
            fitting.append(form)
        if fitting:
            return fitting[0]
    raise InputError(
        f'{str(file)!r} has no line with the columns {", ".join(columns.order)}, but lines such as '
        f'{next(filter(str.strip, lines))!r}; correct columns, where {NOTHING} is an unused value '
        f'and {IGNORED_REST} are all further values.'
    )


def _form_by_header(lines: Sequence[str], file: Path, columns: Columns) -> TableForm:
    """The form of a table by its header, the first line that has the titles.

    A title that the header lacks, such as ``box.x``, may be the key ``x`` of the JSON values in the
    column ``box``. If no line has all titles, the line that has most of them is named in the error.
    """
    titles = columns.titles or {}
    wanted, best = {*titles.values(), *columns.class_titles}, list[str]()
    for start, line in enumerate(islice(lines, FIRST_LINES)):
        # The first title may have the mark of a comment, such as VIA's #filename.
        if not (_may_begin(line) or line.lstrip().startswith(tuple(wanted))):
            continue
        for separator in SEPARATORS:
            header = [title.strip() for title in _values_of_line(line, separator)]
            outer_title = {title: INNER_KEY.sub('', title) for title in wanted.difference(header)}
            if {*header}.issuperset([*outer_title.values(), *columns.class_titles]):
                title_of = {name: outer_title.get(title, title) for name, title in titles.items()}
                indices = {name: header.index(title) for name, title in title_of.items()}
                class_indices = {title: header.index(title) for title in columns.class_titles}
                keys = {  # the part of a title after the title of its column and a dot
                    name: title[len(title_of[name]) + 1 :]
                    for name, title in titles.items()
                    if title in outer_title
                }
                width = len(header)
                return TableForm(
                    start + 1,
                    separator,
                    indices,
                    class_indices,
                    width,
                    below_header=True,
                    keys=keys,
                )
            best = max(best, header, key=lambda line: (len(wanted.intersection(line)), len(line)))
    lacking = min(wanted.difference(best))
    raise InputError(
        f'{str(file)!r} has no column {lacking!r}, but {", ".join(map(repr, best[:20]))}'
        f'{did_you_mean(lacking, best)}'
    )


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
        row = _check_numbers(texts, may_be_empty=True)
        # A box needs all of its numbers; without any, the image has no object.
        if row and len({bool(row.get(name)) for name in columns.shape or ()}) > 1:
            row = None
        if row is not None and columns.class_titles:
            row = _with_classes(
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


def _with_classes(row: dict[str, Any], flag_of: Mapping[str, str]) -> dict[str, Any] | None:
    """The row with the column ``classes``, the names whose flag is on; None if one is no flag."""
    flags = {name: flag.strip().casefold() for name, flag in flag_of.items()}
    if not {*flags.values()} <= {*ON, *OFF}:
        return None
    return {**row, 'classes': tuple(name for name, flag in flags.items() if flag in ON)}


def _check_numbers(row: dict[str, Any], may_be_empty: bool) -> dict[str, Any] | None:
    """The row if its numbers are numbers, else None.

    If they may be empty, and all of a group are, they are left out: an image without an object has
    no box, but may have a size.
    """
    numbers = NUMBER_COLUMNS & row.keys()
    for group in NUMBER_GROUPS if may_be_empty else ():
        if not any(row[name] for name in numbers & group):
            row = {name: value for name, value in row.items() if name not in numbers & group}
            numbers -= group
    return row if all(NUMBER.fullmatch(row[name]) for name in numbers) else None
