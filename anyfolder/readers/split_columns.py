"""The column of a table that says the split of each image, by names, flags or folds."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from anyfolder.errors import UnclearError

from .column_titles import LABEL_TITLES
from .splits import SPLITS, Split, split_in, split_of
from .tables import ON_CELLS, Row

SPLIT_TITLES = ('split', 'set', 'subset', 'part', 'partition')
CODED_TITLE = 'partition'  # CelebA's column of split codes
SPLIT_CODES: dict[str, Split] = {'0': 'train', '1': 'val', '2': 'test'}
SPLIT_FLAG = 'is_'  # prefix of a boolean column for one split, such as is_valid
# A column of numbers of folds, of which each validates once, and a value of it.
FOLD_TITLE = re.compile(r'((cv|k)[ _-]?)?folds?([ _-]?(id|idx|no|number))?', re.IGNORECASE)
LEAST_FOLDS = 3  # two may be the images to train on and to validate, in either order
FOLD = re.compile(r'(?:fold)?[ _-]?(\d{1,3})(?:\.0)?', re.IGNORECASE)


class SplitColumn(NamedTuple):
    """The column of splits in a table.

    Attributes:
        title: of the column.
        codes: the splits of values that are not words, such as numbers of folds.
    """

    title: str
    codes: Mapping[str, Split] = {}

    def said(self, row: Row) -> Split | None:
        """The split that a row says."""
        value, name = row[self.title], self.title.casefold()
        if name.startswith(SPLIT_FLAG) and (flag := split_in(name)):
            if value.casefold() in ON_CELLS:
                return flag
            return 'val' if flag == 'train' else 'train'
        return self.codes.get(value) or split_of(value)


class FoldColumn(NamedTuple):
    """A column of numbers of folds, of which each may validate once.

    Attributes:
        title: of the column.
        codes: the split of each value, where the first fold validates.
        size: how many folds there are.
    """

    title: str
    codes: Mapping[str, Split]
    size: int


def split_column(file: Path, rows: Sequence[Row]) -> SplitColumn | None:
    """The column of splits, if there is one: by its title, or because all its values are splits.

    Of folds, the first one validates, and the others are to train on.

    Raises:
        InputError: if it has the name and no such value.
    """
    named = next(filter(is_split_title, rows[0]), None)
    if named is None:
        if (folds := fold_column(rows)) and folds.size >= LEAST_FOLDS:
            return SplitColumn(folds.title, folds.codes)
        names = (name for name in rows[0] if name.casefold() not in LABEL_TITLES)
        title = next((name for name in names if all(_is_split(row[name]) for row in rows)), None)
        return SplitColumn(title) if title else None
    found = SplitColumn(named, SPLIT_CODES if named.casefold() == CODED_TITLE else {})
    if not any(map(found.said, rows)):
        values = Counter(row[named] for row in rows).most_common()
        raise UnclearError(
            f'the column {named!r} of {str(file)!r} has values such as '
            f'{rows[0][named]!r}, none of which is train, val or test; write these, or rename the '
            'column.',
            format='table',
            labels=[file],
            columns=dict(split=named),
            splits={split: value for split, (value, _) in zip(SPLITS, values, strict=False)},
        )
    return found


def fold_column(rows: Sequence[Row]) -> FoldColumn | None:
    """The column of folds, None if its values are no numbers of these, or only one."""
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
    """A note on the chosen fold, with the lines of a layout that choose another one.

    Returns:
        The words and the example for :meth:`.Findings.warn`, or None without such a column.
    """
    folds, splits = fold_column(rows), split_column(file, rows)
    if not folds or (splits and splits.title != folds.title):
        return None
    what = (
        'columns of folds, of which the first validates and the others are trained on; for '
        "another one, write them into a layout's columns and splits"
        if splits
        else 'columns of two folds, which are not read, since either may be to validate; to read '
        "one, write it into a layout's columns and splits"
    )
    lines = {
        split: [one for one, own in folds.codes.items() if own == split]
        for split in ('train', 'val')
    }
    return what, f'columns: {{split: {folds.title}}}, splits: {lines} of {file}'


def _is_split(value: str) -> bool:
    """True for the name of a split, not for a path with one."""
    return split_of(value) is not None and not {*'/\\.'} & {*value}


def is_split_title(column: str) -> bool:
    """True for a column such as split, or is_valid with true and false."""
    name = column.casefold()
    return name in SPLIT_TITLES or (name.startswith(SPLIT_FLAG) and split_in(name) is not None)
