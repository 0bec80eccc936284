"""Text of unknown people where it is shown: names of files and classes, metadata, errors.

JSON needs none of this: it escapes what has to be, and keeps the value.
"""

import csv
import html
import io
import logging
import re
from collections.abc import Mapping, Sequence
from typing import Any

from anyfolder.terminal import printable, printable_lines

FORMULA = ('=', '+', '-', '@')  # how a formula begins in Excel, LibreOffice and Google Sheets
# Characters of Markdown, and those that GitHub, the hub and Gradio add; a backslash takes the
# meaning of each.
SYNTAX = re.compile(r'([\\`*_\[\]<>#|~&$@]|:(?=//)|(?<=www)\.)', re.IGNORECASE)


def markdown(text: Any) -> str:
    """Text as Markdown that shows it: without links, pictures, HTML, formulas or columns."""
    return SYNTAX.sub(r'\\\1', printable(text))


def markdown_code(text: Any) -> str:
    """Text as code in Markdown."""
    return '`' + printable(text).replace('`', "'") + '`'


def as_html(text: Any) -> str:
    """Text as HTML that shows it."""
    return html.escape(printable(text))


def markdown_table(rows: Sequence[Sequence[str]], numbers: int = 0) -> str:
    """A table of Markdown cells, the titles first; so many of the last columns hold numbers."""
    rule = '|---' * (len(rows[0]) - numbers) + '|--:' * numbers
    titles, *lines = (f'| {" | ".join(row)} |' for row in rows)
    return '\n'.join([titles, f'{rule}|', *lines])


def csv_cell(value: Any) -> Any:
    """A value for a CSV file. Text that a spreadsheet would run as a formula has a ``'`` before it.

    Numbers, also those in text, stay as they are.
    """
    if not isinstance(value, str):
        return value
    text = printable(value)
    return f"'{text}" if text.lstrip().startswith(FORMULA) and not _is_number(text) else text


def _is_number(text: str) -> bool:
    try:
        return bool(float(text)) or True
    except ValueError:
        return False


def as_csv(
    rows: Sequence[Mapping[str, Any]], columns: Sequence[str] | None = None, titled: bool = True
) -> str:
    """A table, empty where a row lacks a column, whose cells are those of :func:`csv_cell`.

    Args:
        rows: the rows.
        columns: their names. Default: all that any row has.
        titled: whether the first line names the columns.
    """
    if columns is None:
        columns = list(dict.fromkeys(column for row in rows for column in row))
    table = [columns] * titled + [[row.get(column, '') for column in columns] for row in rows]
    text = io.StringIO()
    csv.writer(text, lineterminator='\n').writerows(map(csv_cell, row) for row in table)
    return text.getvalue()


class PrintableMessages(logging.Filter):
    """Lets every message of a log through, as :func:`printable_lines`."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = printable_lines(record.getMessage()), ()
        return True
