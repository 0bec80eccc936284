"""The values of a label column: one name, several names, or numbers without names."""

import re
from collections.abc import Callable, Collection

from anyfolder.errors import UnclearError

from .class_names import class_name, warn_merged
from .column_titles import LABEL_TITLES
from .findings import Findings
from .label_structures import structure_reader
from .table_columns import ImageTable

# Members of LABEL_TITLES whose values may be several names separated by blanks.
PLURAL_TITLES = ('labels', 'classes', 'tags')
EMPTY = {'', 'nan', '<na>', 'n/a', '#n/a', 'null'}  # cells without a value
QUOTES = ' []\'"'  # around names in the text of a Python list
MIN_NUMBER_SHARE = 0.9  # fraction of a column's values that are numbers
# With more different numbers than this, they are measurements unless they count classes.
MAX_UNCOUNTED_NUMBERS = 10
NUMBER = re.compile(r'[-+]?(\d+([.,]\d+)?|[.,]\d+)(e[-+]?\d+)?', re.IGNORECASE)


def names_reader(table: ImageTable, column: str, findings: Findings) -> Callable[[str], list[str]]:
    """A function that returns the names in a value of a label column. Ambiguities are noted.

    Raises:
        InputError: if the values are not class names.
    """
    values = {row[column] for row in table.rows} - {''}
    of_structure = structure_reader(values, column, table.file)
    plain_values = {value for value in values if of_structure(value) is None}
    separator = separator_in(table, column, plain_values, findings)

    def names(value: str) -> list[str]:
        if (names_in_structure := of_structure(value)) is not None:
            return names_in_structure
        parts = (part.strip(QUOTES) for part in (value.split(separator) if separator else [value]))
        return [class_name(part) for part in parts if part.casefold() not in EMPTY]

    return names


def separator_in(
    table: ImageTable, column: str, values: Collection[str], findings: Findings
) -> str | None:
    """The separator of labels in a column with several per value; None if each value is one label.

    Ambiguities are noted.

    Raises:
        InputError: if the values are not class names.
    """
    title = column.casefold()
    _check_names(table, column, values, title in LABEL_TITLES or not table.has_header)
    is_plural = title in PLURAL_TITLES
    separator = _separator(values, is_plural)
    if separator is None:
        unclear = [value for value in values if re.search('[ ,]', value)]
        if is_plural and unclear:
            what = 'values with blanks or commas, each taken as one name; use | between several'
            findings.warn(what, f'{unclear[0]!r} in {table.file}')
        warn_merged(sorted(values), findings)
    elif separator in ', ':
        what = f'values with several labels separated by {separator!r}; use | to be sure'
        findings.warn(
            what, f'{next(value for value in values if separator in value)!r} in {table.file}'
        )
    return separator


def _separator(values: Collection[str], is_plural: bool) -> str | None:
    """The separator of several labels in a value: ``|``, ``;``, a comma, or for a plural a space.

    A comma or a blank can be part of a name. It separates if there are no more different parts than
    values, and the number of parts varies; otherwise the values are names of two words. None if
    nothing separates.
    """
    for separator in '|;, ' if is_plural else '|;,':
        if not any(separator in value for value in values):
            continue
        parts = [value.split(separator) for value in values]
        names = {part.strip(QUOTES) for parts_of_value in parts for part in parts_of_value}
        counts = {len(parts_of_value) for parts_of_value in parts}
        if separator in '|;' or (len(names) <= len(values) and len(counts) > 1):
            return separator
    return None


def numbers_in(values: Collection[str]) -> set[float]:
    """The values that are numbers if nearly all of them are, else empty."""
    numbers = [value for value in values if NUMBER.fullmatch(value.strip())]
    if len(numbers) <= MIN_NUMBER_SHARE * len(values):
        return set()
    return {float(value.replace(',', '.')) for value in numbers}


def are_measured(values: Collection[str], are_labels: bool = False) -> bool:
    """True for numbers whose order and distance matter: fractions, or many that count no classes.

    Args:
        values: the different values.
        are_labels: whether the title says that they are labels, so 0, 1, 2 ... or 1, 2, 3 ... are
            classes. Up to half of the numbers may be missing.
    """
    numbers = numbers_in(values)
    are_counted = (
        are_labels and numbers and min(numbers) in (0, 1) and max(numbers) < 2 * len(numbers)
    )
    too_many = len(numbers) > MAX_UNCOUNTED_NUMBERS and not are_counted
    return too_many or any(number % 1 for number in numbers)


def _check_names(table: ImageTable, column: str, values: Collection[str], are_labels: bool) -> None:
    """Raise an ``InputError`` if the labels are measurements, or differ in most rows.

    Args:
        table: the table.
        column: the title of the label column.
        values: the different values in it.
        are_labels: whether the title says that they are labels.
    """
    rows, measured = len(table.rows), are_measured(values, are_labels)
    if measured or (len(values) > max(MAX_UNCOUNTED_NUMBERS, rows / 2) and not are_labels):
        kind = 'numbers' if measured else f'values in {rows} rows'
        first = next((value for value in sorted(values) if '.' in value), min(values))
        hint = '' if are_labels else ', or if they are classes, call it label'
        raise UnclearError(
            f'the column {column!r} of {str(table.file)!r} has {len(values)} {kind} '
            f"such as {first}, but labels must be names; write a few classes such as 'low' "
            f"and 'high' instead{hint}.",
            format='table',
            labels=[table.file],
            columns={'class': column},
        )
