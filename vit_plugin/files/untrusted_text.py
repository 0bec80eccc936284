"""Escape text from unknown sources for display: names of files and classes, metadata, errors.

JSON needs none of this: it escapes by itself, and keeps the value.
"""

import csv
import html
import io
import logging
import re
from collections.abc import Mapping, Sequence
from typing import Any

from anyfolder.terminal import printable, printable_lines

FORMULA_STARTS = (
    '=',
    '+',
    '-',
    '@',
)  # beginnings of a formula in Excel, LibreOffice and Google Sheets
# Special characters of Markdown, GitHub, the hub and Gradio; a backslash escapes each.
MARKDOWN_SYNTAX = re.compile(r'([\\`*_\[\]<>#|~&$@]|:(?=//)|(?<=www)\.)', re.IGNORECASE)


def escape_markdown(text: Any) -> str:
    """Escape text for Markdown, so that it has no links, pictures, HTML, formulas or columns."""
    return MARKDOWN_SYNTAX.sub(r'\\\1', printable(text))


def markdown_code(text: Any) -> str:
    """Format text as inline code in Markdown, which it cannot end: backticks become ``'``."""
    return '`' + printable(text).replace('`', "'") + '`'


def as_html(text: Any) -> str:
    """Escape text for HTML."""
    return html.escape(printable(text))


def markdown_table(rows: Sequence[Sequence[str]], numbers: int = 0) -> str:
    """A Markdown table.

    Args:
        rows: the cells, already escaped. The first row has the titles.
        numbers: how many of the last columns have numbers, and are right-aligned.
    """
    rule = '|---' * (len(rows[0]) - numbers) + '|--:' * numbers
    titles, *lines = (f'| {" | ".join(row)} |' for row in rows)
    return '\n'.join([titles, f'{rule}|', *lines])


def csv_cell(value: Any) -> Any:
    """A value for a CSV file. Text that a spreadsheet would run as a formula gets a leading ``'``.

    Numbers, also as text, are unchanged.
    """
    if not isinstance(value, str):
        return value
    text = printable(value)
    return f"'{text}" if text.lstrip().startswith(FORMULA_STARTS) and not _is_number(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def as_csv(
    rows: Sequence[Mapping[str, Any]],
    columns: Sequence[str] | None = None,
    with_header: bool = True,
) -> str:
    """Rows as CSV, with cells escaped by :func:`csv_cell` and empty where a row lacks a column.

    Args:
        rows: the rows.
        columns: names of the columns. Default: all that any row has.
        with_header: whether to write a header line.
    """
    if columns is None:
        columns = list(dict.fromkeys(column for row in rows for column in row))
    table = [[row.get(column, '') for column in columns] for row in rows]
    if with_header:
        table.insert(0, list(columns))
    text = io.StringIO()
    csv.writer(text, lineterminator='\n').writerows(map(csv_cell, row) for row in table)
    return text.getvalue()


class PrintableMessages(logging.Filter):
    """A logging filter that makes every message printable, by :func:`printable_lines`."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = printable_lines(record.getMessage()), ()
        return True
