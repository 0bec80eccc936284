"""Detect the separator, the header and the columns of a table from its first lines."""

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from anyfolder.errors import InputError
from anyfolder.readers.label_structures import text_of_key

from .columns import IGNORED_REST, INNER_KEY, NOTHING, NUMBER_COLUMNS, TAKE_REST, Columns
from .nearest import did_you_mean
from .row_values import Row, check_numbers, with_classes

SEPARATORS = (',', ';', '\t', '|', ' ')  # between values; a space is any number of spaces
FIRST_LINES = 10  # the header, or the first row that fits, is in one of these lines
COMMENT = re.compile(r'#|//|"?sep=.?"?\s*$', re.IGNORECASE)
NUMBER_LIST = re.compile(r'[\d\s.,;:eE+\-\[\]()]*')  # a list of numbers


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

    def values(self, lines: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
        """The values of each non-empty line with a row, and the number of the line."""
        body = lines[self.start :]
        if self.separator == ' ':
            numbered = ((number, line.split()) for number, line in enumerate(body, self.start + 1))
        else:
            reader = csv.reader(body, delimiter=self.separator, skipinitialspace=True)
            numbered = ((self.start + reader.line_num, values) for values in reader)
        return ((number, values) for number, values in numbered if any(map(str.strip, values)))

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
        row = check_numbers(cells, may_be_empty=self.below_header)
        if row is None or not all(NUMBER_LIST.fullmatch(row.get(name, '')) for name in TAKE_REST):
            return None
        if self.class_indices:
            return with_classes(row, {name: values[i] for name, i in self.class_indices.items()})
        return row


def find_form(lines: Sequence[str], file: Path, columns: Columns) -> TableForm:
    """The form of a table, from its first lines.

    Raises:
        InputError: if its header lacks a title, or no line has such columns.
    """
    if columns.order:
        return _form_without_header(lines, file, columns)
    return _form_by_header(lines, file, columns)


def _values_of_line(line: str, separator: str) -> list[str]:
    """The values of a single line, as :meth:`TableForm.values` divides it."""
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
