"""Tables of the classes of images: ``train.csv``, ``metadata.csv``, ``_classes.csv``."""

import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from vit_plugin.errors import ConfigError

from .class_names import class_name, note_merged
from .findings import MAX_STRAY_SHARE, Findings
from .image_tree import Tree
from .records import ImageRecord
from .splits import Split, split_in, split_of
from .tables import FORMS, TRIED, Row, read_rows

FILES = (
    'file',
    'filename',
    'file_name',
    'image',
    'image_id',
    'imageid',
    'image_name',
    'path',
    'img',
    'name',
    'id',
)
LABELS = ('label', 'labels', 'class', 'classes', 'category', 'target', 'tags', 'species', 'breed')
# Finding Labels, class_name
LABELED = re.compile(rf'(^|[ _-])({"|".join(LABELS)})([ _-]names?)?$', re.IGNORECASE)
PARTS = ('split', 'set', 'subset', 'part', 'partition')
FLAG = 'is_'  # at the beginning of a column of yes and no for a part
PLURALS = ('labels', 'classes', 'tags')  # of LABELS, whose values may be words with blanks between
BOXES = {'xmin', 'x_min', 'x1', 'bbox', 'objects'}
ON, OFF = ('1', '1.0', 'true'), ('0', '0.0', 'false')  # of a column of one class
QUOTES = ' []\'"'  # around the names in a list of Python's
SAMPLE = 'submission'  # in the name of a table of Kaggle whose labels are made up
MAINLY = 0.9  # of the labels
MANY = 10  # different numbers, from which on they are measurements unless they count classes
# A number and its unit, and a date.
NUMBER = re.compile(r'([-+]?\d*[.,]?\d+(?:e[-+]?\d+)?)\s*(%|[^\W\d_]{1,3}[²³]?)?', re.IGNORECASE)
DATE = re.compile(r'(\d{4}([-/.])\d\d?\2\d\d?|\d\d?([-/.])\d\d?\3\d{4})([ T]\d.*)?')


def read_tables(tree: Tree, findings: Findings) -> tuple[list[ImageRecord], bool, list[Path]]:
    """The images that tables give classes to.

    A table has a column of images, with or without their suffix, and either one of labels, maybe
    several in a row, or one of 0 and 1 for each class. A column of parts is optional. Its name or
    folder may say the part, too. Where nearly all images have one class, the others are left out.

    Returns:
        The images, whether one may have several classes, and the tables.

    Raises:
        ConfigError: if a table has images, and no column that can be their label, or if two tables
            say other classes of an image.
    """
    records: dict[str, ImageRecord] = {}
    tables: list[Path] = []
    in_columns = False
    for file, rows, column in _tables(tree):
        tables.append(file)
        if len(rows[0]) == 1:
            findings.note('tables left out, which have no column but that of images', file)
            continue
        part = part_column(file, rows)
        labels = _label_columns(file, rows, column, part)
        in_columns |= len(labels) > 1
        mark = None if len(labels) > 1 else _separator_said(file, rows, column, labels[0], findings)
        for path, split, row in _images(tree, file, rows, column, part, findings):
            record = records.setdefault(str(path), ImageRecord(path, split, origin=str(file)))
            names = _names(row, labels, mark)
            if record.origin != str(file) and {*record.labels} != {*names}:
                raise ConfigError(
                    f'--data: {record.origin!r} and {str(file)!r} say other classes of '
                    f'{str(path)!r}; keep one of them.'
                )
            record.labels = tuple(dict.fromkeys([*record.labels, *names]))
    found = sorted(records.values(), key=lambda record: (record.labels, str(record.path)))
    of_one = _of_one_class(found, in_columns, findings)
    return (found, True, tables) if of_one is None else (of_one, False, tables)


def _tables(tree: Tree) -> Iterator[tuple[Path, list[Row], str]]:
    """The tables with a column of images, their rows, and that column."""
    for file in tree.others:
        is_text = file.suffix.lower() == '.txt'
        if not (is_text or file.suffix.lower() in FORMS) or SAMPLE in file.stem.casefold():
            continue
        try:
            rows = read_rows(file)
        except ConfigError:
            if is_text:  # notes in another encoding
                continue
            raise
        column = file_column(tree, file, rows)
        # A text has a number before its names.
        if column is not None and not (is_text and [*rows[0]].index(column)):
            yield file, rows, column


def _images(
    tree: Tree, file: Path, rows: list[Row], column: str, part: str | None, findings: Findings
) -> Iterator[tuple[Path, Split | None, Row]]:
    """The rows whose image is there, with it and its part."""
    split = tree.split_said(file)
    for row in rows:
        own = part_of(row[part], part) if part else split
        images = tree.index.match(row[column], file, own)
        if not images:
            what = f'rows of {file.name} left out, whose image is not there'
            findings.note(what, row[column])
        elif path := tree.index.only(images, f'{row[column]!r} of {file}', findings):
            yield path, own or tree.split(path), row


def _of_one_class(
    found: list[ImageRecord], in_columns: bool, findings: Findings
) -> list[ImageRecord] | None:
    """The images of one class, or None if those of several or of none are learned, too."""
    others = [record for record in found if len(record.labels) != 1]
    several = sum(len(record.labels) > 1 for record in others) > MAX_STRAY_SHARE * len(found)
    together = several or (in_columns and others)
    findings.note_all(
        'images of several classes or none, so that each class is learned on its own (multi-label)'
        if together
        else 'images left out, of which a table says no class, or two',
        (record.path for record in others),
    )
    return None if together else [record for record in found if len(record.labels) == 1]


def _separator_said(
    file: Path, rows: Sequence[Row], column: str, label: str, findings: Findings
) -> str | None:
    """What separates the labels of a value, if there may be several. What is unclear is noted.

    Raises:
        ConfigError: if the values are no names of classes.
    """
    values, plain = {row[label] for row in rows} - {''}, label.casefold()
    named = plain in LABELS or rows[0][column] == column
    _check_classes_are_names(file, label, values, named, len(rows))
    several = plain in PLURALS
    mark = _separator(values, several)
    if mark is None:
        unclear = [value for value in values if re.search('[ ,]', value)]
        if several and unclear:
            what = 'values with blanks or commas, each taken as one name; write | between several'
            findings.note(what, f'{unclear[0]!r} in {file}')
        note_merged(sorted(values), findings)
    elif mark in ', ':
        what = f'several labels in a value, between which is {mark!r}; write | to be sure'
        findings.note(what, f'{next(value for value in values if mark in value)!r} in {file}')
    return mark


def part_column(file: Path, rows: Sequence[Row]) -> str | None:
    """The column of parts, if there is one: by its name, or since all its values are parts.

    Raises:
        ConfigError: if it has the name and no such value.
    """
    named = next(filter(_says_part, rows[0]), None)
    if named is None:
        names = (name for name in rows[0] if name.casefold() not in LABELS)
        return next((name for name in names if all(split_of(row[name]) for row in rows)), None)
    if not any(part_of(row[named], named) for row in rows):
        raise ConfigError(
            f'--data: the column {named!r} of {str(file)!r} has values such as '
            f'{rows[0][named]!r}, none of which is train, val or test; write these, or rename the '
            'column.'
        )
    return named


def _says_part(column: str) -> bool:
    """True for a column such as split, or is_valid with true and false."""
    name = column.casefold()
    return name in PARTS or (name.startswith(FLAG) and split_in(name) is not None)


def part_of(value: str, column: str) -> Split | None:
    """The part that a row of such a column says."""
    flag = split_in(column) if column.casefold().startswith(FLAG) else None
    if flag is None:
        return split_of(value)
    if value.casefold() in ON:
        return flag
    return 'val' if flag == 'train' else 'train'


def _separator(values: Collection[str], plural: bool) -> str | None:
    """What is between several labels of a value: ``|``, ``;``, a comma, or in a plural a blank.

    A comma or a blank may be within a name. It is taken if there are no more parts than values,
    and if not all have as many parts: those are names of two words.
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


def numbers_in(values: Collection[str]) -> tuple[set[float], str]:
    """The numbers that nearly all of some values are, and their unit; the days of dates."""
    found = [number for value in values if (number := NUMBER.fullmatch(value.strip()))]
    units = {(number[2] or '').casefold() for number in found} - {''}
    if len(found) > MAINLY * len(values) and len(units) < 2:
        return {float(number[1].replace(',', '.')) for number in found}, ''.join(units)
    dates = [date[1] for value in values if (date := DATE.fullmatch(value.strip()))]
    if len(dates) > MAINLY * len(values):
        return {float(re.sub(r'\D', '', date)) for date in dates}, 'date'
    return set(), ''


def are_measured(values: Collection[str], named: bool = False) -> bool:
    """True for numbers whose order and distance count: many that count nothing, or fractions.

    A few lengths, such as 0.5 mm and 1 mm, may be sizes of screws.

    Args:
        values: the different values.
        named: whether they are said to be labels, so that 0, 1, 2 ... or 1, 2, 3 ... are classes.
    """
    numbers, unit = numbers_in(values)
    counted = named and not unit and numbers and min(numbers) in (0, 1)
    many = len(numbers) > MANY and not (counted and max(numbers) < 2 * len(numbers))
    return many or (unit in ('', '%') and any(number % 1 for number in numbers))


def _check_classes_are_names(
    file: Path, column: str, values: Collection[str], counted: bool, rows: int
) -> None:
    """Raise a ``ConfigError`` if the labels are measurements, or mostly another in each row."""
    measured = are_measured(values, counted)
    if measured or (len(values) > max(MANY, rows / 2) and not counted):
        kind = 'numbers' if measured else f'values in {rows} rows'
        first = next((value for value in sorted(values) if '.' in value), min(values))
        hint = '' if counted else ', or if they are classes, call it label'
        raise ConfigError(
            f'--data: the column {column!r} of {str(file)!r} has {len(values)} {kind} such as '
            f"{first}, and a classifier learns names; write a few classes such as 'low' and 'high' "
            f'in place of them{hint}.'
        )


def file_column(tree: Tree, file: Path, rows: list[Row]) -> str | None:
    """The column with names of images: most of its first rows are found. A header may be a row."""
    tried = rows[:TRIED]
    names = [name for name in (rows[0] if rows else ()) if name.casefold() not in LABELS]
    for column in sorted(names, key=lambda name: name.casefold() not in FILES):
        found = sum(bool(tree.index.match(row[column], file)) for row in tried if row[column])
        if found > len(tried) / 2:
            if tree.index.match(column, file):
                rows.insert(0, {name: name for name in rows[0]})
            return column
    return None


def label_column(columns: Sequence[str]) -> str | None:
    """Of the columns but that of images, that of labels: by its name, or the only one."""
    exact = [name for name in columns if name.casefold() in LABELS][:1]
    found = exact or [name for name in columns if LABELED.search(name)] or columns
    return found[0] if len(found) == 1 else None


def _label_columns(file: Path, rows: Sequence[Row], column: str, part: str | None) -> list[str]:
    """The column of labels, or those of 0 and 1, one for each class."""
    others = [name for name in rows[0] if name not in (column, part) and not _says_part(name)]
    if boxes := BOXES & {name.casefold() for name in others}:
        raise ConfigError(
            f'--data: {str(file)!r} has boxes in the column {boxes.pop()!r}; give --task detection.'
        )
    headed = rows[0][column] != column and not {*LABELS} & {name.casefold() for name in others}
    flags = others if headed and len(others) > 1 else []
    if flags and all(row[name].casefold() in ON + OFF for row in rows for name in flags):
        return flags
    if label := label_column(others):
        return [label]
    raise ConfigError(
        f'--data: {str(file)!r} has the columns {", ".join(rows[0])}, and none of them is called '
        'label; rename the one with the classes.'
    )


def _names(row: Row, labels: Sequence[str], mark: str | None) -> list[str]:
    if len(labels) > 1:
        return [class_name(name) for name in labels if row[name].casefold() in ON]
    value = row[labels[0]]
    parts = (part.strip(QUOTES) for part in (value.split(mark) if mark else [value]))
    return [class_name(part) for part in parts if part and part != 'nan']
