"""Tables of the classes of images: ``train.csv``, ``metadata.csv``, ``_classes.csv``."""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path

from anyfolder.errors import InputError

from .class_names import class_name
from .findings import MAX_STRAY_SHARE, Findings
from .image_tree import Tree
from .label_values import QUOTES, separator_in
from .records import ImageRecord, Records
from .table_columns import ON, ImageTable, find_table
from .tables import FORMS, Row

SAMPLE = 'submission'  # in the name of a table of Kaggle whose labels are made up


def read_tables(tree: Tree, findings: Findings) -> tuple[Records, bool, list[Path]]:
    """The images that tables give classes to.

    A table has a column of images, with or without their suffix, and either one of labels, maybe
    several in a row, or one of 0 and 1 for each class. A column of parts is optional. Its name or
    folder may say the part, too. Where nearly all images have one class, the others are left out.

    Returns:
        The images, whether one may have several classes, and the tables.

    Raises:
        InputError: if a table has images, and no column that can be their label, or if two tables
            say other classes of an image.
    """
    records: dict[str, ImageRecord] = {}
    tables: list[Path] = []
    in_columns = False
    for table in _tables(tree):
        file = table.file
        tables.append(file)
        if len(table.rows[0]) == 1:
            findings.warn('tables left out, which have no column but that of images', file)
            continue
        labels, split = table.labels(), tree.split_said(file)
        in_columns |= len(labels) > 1
        mark = None if len(labels) > 1 else separator_in(table, labels[0], findings)
        lost = f'rows of {file.name} left out, whose image is not there'
        for row in table.rows:
            own = table.part_of(row) if table.part else split
            path = tree.resolve(row[table.images], file, own, findings, lost)
            if path is None:
                continue
            record = records.setdefault(str(path), tree.record(path, file, own))
            names = _names(row, labels, mark)
            if record.origin != str(file) and {*record.labels} != {*names}:
                raise InputError(
                    f'{record.origin!r} and {str(file)!r} say other classes of '
                    f'{str(path)!r}; keep one of them.'
                )
            record.labels = tuple(dict.fromkeys([*record.labels, *names]))
    found = sorted(records.values(), key=lambda record: (record.labels, str(record.path)))
    of_one = _of_one_class(found, in_columns, findings)
    return (found, True, tables) if of_one is None else (of_one, False, tables)


def _tables(tree: Tree) -> Iterator[ImageTable]:
    """The tables with a column of images. In a text, that is the first one."""
    for file in tree.others:
        is_text = file.suffix.lower() == '.txt'
        if not (is_text or file.suffix.lower() in FORMS) or SAMPLE in file.stem.casefold():
            continue
        with suppress(InputError) if is_text else nullcontext():  # notes in another encoding
            table = find_table(tree, file)
            if table and not (is_text and [*table.rows[0]].index(table.images)):
                yield table


def _of_one_class(found: Records, in_columns: bool, findings: Findings) -> Records | None:
    """The images of one class, or None if those of several or of none are learned, too."""
    others = [record for record in found if len(record.labels) != 1]
    several = sum(len(record.labels) > 1 for record in others) > MAX_STRAY_SHARE * len(found)
    together = several or (in_columns and others)
    findings.warn_all(
        'images of several classes or none, so that each class is learned on its own (multi-label)'
        if together
        else 'images left out, of which a table says no class, or two',
        (record.path for record in others),
    )
    return None if together else [record for record in found if len(record.labels) == 1]


def _names(row: Row, labels: Sequence[str], mark: str | None) -> list[str]:
    if len(labels) > 1:
        return [class_name(name) for name in labels if row[name].casefold() in ON]
    value = row[labels[0]]
    parts = (part.strip(QUOTES) for part in (value.split(mark) if mark else [value]))
    return [class_name(part) for part in parts if part and part != 'nan']
