"""Find the column of a table with the split of each image, as names, flags or folds."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from anyfolder.errors import UnclearError

from .column_titles import LABEL_TITLES
from .formats.json_values import is_yes
from .splits import SPLITS, Split, split_in, split_of
from .tables import OFF_CELLS, Row

SPLIT_TITLES = ('split', 'set', 'subset', 'part', 'partition')
CODED_TITLE = 'partition'  # CelebA's column of split codes
SPLIT_CODES: dict[str, Split] = {'0': 'train', '1': 'val', '2': 'test'}
SPLIT_FLAG = 'is_'  # prefix of a boolean column for one split, such as is_valid
NO_CELLS = (*OFF_CELLS, 'no', '')  # in lower case; for the others see `is_yes`
# The title of a column of fold numbers, and its values. Each fold validates once.
FOLD_TITLE = re.compile(r'((cv|k)[ _-]?)?folds?([ _-]?(id|idx|no|number))?', re.IGNORECASE)
MIN_FOLDS = 3  # with two folds, either one may be for validation
FOLD = re.compile(r'(?:fold)?[ _-]?(\d{1,3})(?:\.0)?', re.IGNORECASE)


class SplitColumn(NamedTuple):
    """The split column of a table.

    Attributes:
        title: the title of the column.
        codes: the splits of values that do not name one, such as fold numbers.
        flags: the columns such as is_valid, if the title is that of one: each states one split.
    """

    title: str
    codes: Mapping[str, Split] = {}
    flags: Sequence[str] = ()

    def split_of_row(self, row: Row) -> Split | None:
        """The split that a row states, or None."""
        if self.flags:
            return self._flagged_split(row)
        value = row[self.title]
        return self.codes.get(value) or split_of(value)

    def _flagged_split(self, row: Row) -> Split | None:
        """The split whose column marks a row; without a mark, a split that has no column."""
        column_of = {split: title for title in self.flags if (split := split_in(title.casefold()))}
        # The mark of the split furthest from training counts.
        for split in reversed(SPLITS):
            if split in column_of and is_yes(row[column_of[split]]):
                return split
        if not all(row[title].casefold() in NO_CELLS for title in column_of.values()):
            return None
        # Images without a mark are for training, or for validation if training has a column.
        others: tuple[Split, ...] = 'train', 'val'
        return next((split for split in others if split not in column_of), None)


class FoldColumn(NamedTuple):
    """A column of fold numbers. Each fold can be used for validation.

    Attributes:
        title: the title of the column.
        codes: the split of each value, with the first fold for validation.
        size: the number of folds.
    """

    title: str
    codes: Mapping[str, Split]
    size: int


def split_column(file: Path, rows: Sequence[Row]) -> SplitColumn | None:
    """The split column, if there is one: by its title, or because its values are folds or splits.

    The first of several folds is for validation, the others for training.

    Raises:
        InputError: if a column has the title of a split column, but other values.
    """
    named = next(filter(is_split_title, rows[0]), None)
    if named is None:
        if (folds := fold_column(rows)) and folds.size >= MIN_FOLDS:
            return SplitColumn(folds.title, folds.codes)
        names = (name for name in rows[0] if name.casefold() not in LABEL_TITLES)
        title = next((name for name in names if all(_is_split(row[name]) for row in rows)), None)
        return SplitColumn(title) if title else None
    flags = [title for title in rows[0] if _is_flag(title)] if _is_flag(named) else []
    codes = SPLIT_CODES if named.casefold() == CODED_TITLE else {}
    column = SplitColumn(named, codes, flags)
    if not any(map(column.split_of_row, rows)):
        values = Counter(row[named] for row in rows).most_common()
        raise UnclearError(
            f'the column {named!r} of {str(file)!r} has values such as '
            f'{rows[0][named]!r}, none of which is train, val or test; use these, or rename the '
            'column.',
            format='table',
            labels=[file],
            columns=dict(split=named),
            # The most frequent value is proposed for training.
            splits={split: value for split, (value, _) in zip(SPLITS, values, strict=False)},
        )
    return column


def fold_column(rows: Sequence[Row]) -> FoldColumn | None:
    """The column of folds, by its title; None if its values are not two or more fold numbers."""
    title = next(filter(FOLD_TITLE.fullmatch, rows[0]), None)
    if title is None:
        return None
    values = {row[title] for row in rows}
    numbers = {value: int(fold[1]) for value in values if (fold := FOLD.fullmatch(value))}
    first, count = min(numbers.values(), default=0), len({*numbers.values()})
    if len(numbers) < len(values - {''}) or count < 2:
        return None
    return FoldColumn(
        title,
        {value: 'val' if number == first else 'train' for value, number in sorted(numbers.items())},
        count,
    )


def fold_note(file: Path, rows: Sequence[Row]) -> tuple[str, str] | None:
    """A note on how folds are read, with the lines of a layout in which others can be chosen.

    Returns:
        The words and the example for :meth:`.Findings.warn`, or None without a column of folds, or
        if another column has the splits.
    """
    folds, splits = fold_column(rows), split_column(file, rows)
    if not folds or (splits and splits.title != folds.title):
        return None
    what = (
        'columns of folds, the first of which validates and the others are trained on; for '
        'another fold, use columns and splits of a layout'
        if splits
        else 'columns of two folds, not read, since either one may be for validation; to read '
        'one, use columns and splits of a layout'
    )
    lines = {
        split: [value for value, code in folds.codes.items() if code == split]
        for split in ('train', 'val')
    }
    return what, f'columns: {{split: {folds.title}}}, splits: {lines} of {file}'


def _is_split(value: str) -> bool:
    """True for the name of a split, but not for a path with one."""
    return split_of(value) is not None and not {*'/\\.'} & {*value}


def is_split_title(column: str) -> bool:
    """True for a column such as split, or is_valid with true and false."""
    return column.casefold() in SPLIT_TITLES or _is_flag(column)


def _is_flag(column: str) -> bool:
    """True for a column such as is_valid, which has true and false for one split."""
    name = column.casefold()
    return name.startswith(SPLIT_FLAG) and split_in(name) is not None
