"""The values of a label column: one name, several names, or numbers without names."""

import re
from collections.abc import Callable, Collection

from anyfolder.errors import UnclearError

from .class_names import class_name, warn_merged
from .column_titles import LABEL_TITLES
from .findings import Findings
from .label_structures import structure_reader
from .table_columns import ImageTable

# Members of LABEL_TITLES whose values may hold blanks.
PLURAL_TITLES = ('labels', 'classes', 'tags')
EMPTY = {'', 'nan', '<na>', 'n/a', '#n/a', 'null'}  # cells without a value
QUOTES = ' []\'"'  # around names in the text of a Python list
MIN_NUMBER_SHARE = 0.9  # fraction of a column's values that are numbers
# Number of different values above which they are measurements unless they count classes.
MAX_UNCOUNTED_NUMBERS = 10
NUMBER = re.compile(r'[-+]?\d*[.,]?\d+(e[-+]?\d+)?', re.IGNORECASE)


def names_reader(table: ImageTable, column: str, findings: Findings) -> Callable[[str], list[str]]:
    """A function that returns the names in a value of a label column. Ambiguities are noted.

    Raises:
        InputError: if the values are no class names.
    """
    values = {row[column] for row in table.rows} - {''}
    of_structure = structure_reader(values, column, table.file)
    mark = separator_in(
        table, column, {one for one in values if of_structure(one) is None}, findings
    )

    def names(value: str) -> list[str]:
        if (found := of_structure(value)) is not None:
            return found
        parts = (part.strip(QUOTES) for part in (value.split(mark) if mark else [value]))
        return [class_name(part) for part in parts if part.casefold() not in EMPTY]

    return names


def separator_in(
    table: ImageTable, label: str, values: Collection[str], findings: Findings
) -> str | None:
    """The separator of labels in values with several. Ambiguities are noted.

    Raises:
        InputError: if the values are no class names.
    """
    plain = label.casefold()
    named = plain in LABEL_TITLES or not table.has_header
    _check_names(table, label, values, named)
    several = plain in PLURAL_TITLES
    mark = _separator(values, several)
    if mark is None:
        unclear = [value for value in values if re.search('[ ,]', value)]
        if several and unclear:
            what = 'values with blanks or commas, each taken as one name; use | between several'
            findings.warn(what, f'{unclear[0]!r} in {table.file}')
        warn_merged(sorted(values), findings)
    elif mark in ', ':
        what = f'values with several labels separated by {mark!r}; use | to be sure'
        findings.warn(what, f'{next(value for value in values if mark in value)!r} in {table.file}')
    return mark


def _separator(values: Collection[str], plural: bool) -> str | None:
    """The separator of several labels in a value: ``|``, ``;``, a comma, or for a plural a space.

    A comma or a blank can be part of a name. It separates if there are no more different parts than
    values, and the number of parts varies; otherwise the values are names of two words.
    """
    for mark in '|;, ' if plural else '|;,':
        parts = [value.split(mark) for value in values]
        names = {part.strip(QUOTES) for each in parts for part in each}
        several = mark in '|;' or (
            len(names) <= len(values) and len({len(each) for each in parts}) > 1
        )
        if any(mark in value for value in values) and several:
            return mark
    return None


def numbers_in(values: Collection[str]) -> set[float]:
    """The values as numbers if nearly all of them are numbers, else empty."""
    found = [value for value in values if NUMBER.fullmatch(value.strip())]
    if len(found) <= MIN_NUMBER_SHARE * len(values):
        return set()
    return {float(value.replace(',', '.')) for value in found}


def are_measured(values: Collection[str], named: bool = False) -> bool:
    """True for numbers whose order and distance matter: fractions, or many that count nothing.

    Args:
        values: the different values.
        named: whether the title says that they are labels, so 0, 1, 2 ... or 1, 2, 3 ... are
            classes.
    """
    numbers = numbers_in(values)
    counted = named and numbers and min(numbers) in (0, 1) and max(numbers) < 2 * len(numbers)
    many = len(numbers) > MAX_UNCOUNTED_NUMBERS and not counted
    return many or any(number % 1 for number in numbers)


def _check_names(table: ImageTable, column: str, values: Collection[str], counted: bool) -> None:
    """Raise an ``InputError`` if the labels are measurements, or differ in most rows."""
    rows, measured = len(table.rows), are_measured(values, counted)
    if measured or (len(values) > max(MAX_UNCOUNTED_NUMBERS, rows / 2) and not counted):
        kind = 'numbers' if measured else f'values in {rows} rows'
        first = next((value for value in sorted(values) if '.' in value), min(values))
        hint = '' if counted else ', or if they are classes, call it label'
        raise UnclearError(
            f'the column {column!r} of {str(table.file)!r} has {len(values)} {kind} '
            f"such as {first}, but labels must be names; write a few classes such as 'low' "
            f"and 'high' instead{hint}.",
            format='table',
            labels=[table.file],
            columns={'class': column},
        )
