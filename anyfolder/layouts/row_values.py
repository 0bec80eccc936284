"""The values of a row of a table: its numbers are checked, and its flags are classes."""

from collections.abc import Mapping
from typing import Any

from anyfolder.readers.tables import NUMBER

from .columns import NUMBER_COLUMNS, NUMBER_GROUPS

# Flags of an image that has a class, and of one that does not.
ON, OFF = ('1', '1.0', 'true'), ('0', '0.0', 'false', '-1', '-1.0', '')
# The text of each column by its name. `classes` may also be a tuple of the names of those classes
# whose own column has a 1.
Row = Mapping[str, Any]


def with_classes(row: dict[str, Any], flag_of: Mapping[str, str]) -> dict[str, Any] | None:
    """The row with the column ``classes``, the names whose flag is on; None if one is no flag."""
    flags = {name: flag.strip().casefold() for name, flag in flag_of.items()}
    if not {*flags.values()} <= {*ON, *OFF}:
        return None
    return {**row, 'classes': tuple(name for name, flag in flags.items() if flag in ON)}


def check_numbers(row: dict[str, Any], may_be_empty: bool) -> dict[str, Any] | None:
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
