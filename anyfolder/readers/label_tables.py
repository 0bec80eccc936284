"""Tables with the classes of images: ``train.csv``, ``metadata.csv``, ``_classes.csv``, or JSON."""

from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import NamedTuple

from anyfolder.errors import InputError, UnclearError

from .class_names import class_name
from .column_titles import BOX_TITLES
from .division import furthest
from .findings import MAX_STRAY_SHARE, Findings
from .identity import OTHER_ZEROS, single_match
from .image_tree import Tree
from .label_values import names_reader
from .named_folders import NamedFolders
from .records import ImageRecord, Records
from .split_columns import fold_note
from .split_lines import is_list_name
from .splits import Split
from .table_columns import ImageTable, find_table
from .tables import ON_CELLS, TABLE_SUFFIXES, Row

SAMPLE_LABELS = 'submission'  # in names of Kaggle's sample submissions, whose labels are dummies


class TableLabels(NamedTuple):
    """The labels in tables.

    Attributes:
        records: the images with their classes.
        multi_label: whether an image may have several classes.
        files: the tables.
    """

    records: Records
    multi_label: bool
    files: list[Path]


def read_tables(tree: Tree, findings: Findings) -> TableLabels:
    """The images that have classes in tables.

    A table has a column of images, with or without their suffix, or of folders of images, and
    either a label column, maybe with several labels per row, or a column of 0 and 1 for each class.
    A split column is optional; the name or folder of the table can also state the split. If nearly
    all images have one class, the others are left out.

    Raises:
        InputError: if all tables have images but no possible label column, or if two tables
            disagree on the classes of an image.
    """
    chosen = _choose_tables(find_tables(tree), findings)
    records: dict[str, ImageRecord] = {}
    for table, names_of in chosen:
        for path, stated in _read_table(tree, table, names_of, findings).items():
            _merge(records.setdefault(path, stated), stated, findings)
    has_flag_columns = any(table.flag_columns for table, _ in chosen)
    by_class = sorted(records.values(), key=lambda record: (record.labels, str(record.path)))
    single_class = _single_class_records(by_class, has_flag_columns, findings)
    files = [table.file for table, _ in chosen]
    if single_class is None:
        return TableLabels(by_class, multi_label=True, files=files)
    return TableLabels(single_class, multi_label=False, files=files)


def find_tables(tree: Tree) -> Iterator[ImageTable]:
    """The tables with an image column. In a text file, that is the first column."""
    folders = NamedFolders(tree)
    for file in tree.others:
        suffix = file.suffix.lower()
        is_text = suffix == '.txt'
        if (
            suffix not in (*TABLE_SUFFIXES, '.txt', '.json')
            or SAMPLE_LABELS in file.stem.casefold()
        ):
            continue
        # Texts can be notes in another encoding, and name images in their first column only.
        with suppress(InputError) if is_text else nullcontext():
            table = find_table(tree, file, folders)
            if table and not (is_text and [*table.rows[0]].index(table.image_column)):
                yield table


NamesOf = Callable[[Row], list[str]]


def names_in(table: ImageTable, findings: Findings) -> NamesOf:
    """A function that returns the classes in a row.

    Raises:
        InputError: if no column of the table can be the label column.
    """
    columns = table.labels()
    if table.flag_columns:
        return lambda row: [
            class_name(name) for name in columns if row[name].casefold() in ON_CELLS
        ]
    column = columns[0]
    names_of = names_reader(table, column, findings)
    return lambda row: names_of(row[column])


def _choose_tables(
    tables: Iterator[ImageTable], findings: Findings
) -> list[tuple[ImageTable, NamesOf]]:
    """The tables with classes: by their column names, or else in the only column.

    Other tables, such as the age of patients, are left out.

    Raises:
        InputError: if no table has classes, and one may have them, or if a table has boxes.
    """
    readable: list[tuple[ImageTable, NamesOf]] = []
    faults: list[tuple[Path, InputError]] = []
    for table in tables:
        if not table.other_columns:
            if not (table.splits or is_list_name(table.file.stem)):
                what = 'tables left out, since they have no column except that of images'
                findings.leave_out_files(what, [table.file])
            continue
        try:
            readable.append((table, names_in(table, findings)))
        except InputError as error:
            if BOX_TITLES & {name.casefold() for name in table.other_columns}:
                raise
            faults.append((table.file, error))
    if faults and not readable:
        raise faults[0][1]
    chosen = [pair for pair in readable if pair[0].is_of_classes] or readable
    left_out = [file for file, _ in faults]
    left_out += [pair[0].file for pair in readable if pair not in chosen]
    what = 'tables left out, since they have no class column and another one has'
    findings.leave_out_files(what, left_out)
    return chosen


def _read_table(
    tree: Tree, table: ImageTable, names_of: NamesOf, findings: Findings
) -> dict[str, ImageRecord]:
    """The images of a table by their paths, each with the classes of all of its rows.

    Raises:
        InputError: if rows are about parts of folders.
    """
    if table.of_folders:
        _check_whole_folders(table, names_of)
    file, split = table.file, tree.stated_split(table.file)
    if table.group_title:
        what = 'columns by whose values images are kept in one split'
        findings.warn(what, f'{table.group_title} of {file.name}')
    if note := fold_note(file, table.rows):
        findings.warn(*note)
    records: dict[str, ImageRecord] = {}
    for row in table.rows:
        row_split = table.stated_split(row) if table.splits else split
        labels = tuple(names_of(row))
        images, group = _images_of_row(tree, table, row, row_split, findings)
        for path in images:
            stated = tree.record(path, file, row_split, group=group, labels=labels)
            _merge(records.setdefault(str(path), stated), stated, findings)
    return records


def _images_of_row(
    tree: Tree, table: ImageTable, row: Row, split: Split | None, findings: Findings
) -> tuple[list[Path], str]:
    """The images that a row names, and the group to keep in one split, empty if there is none."""
    file, name = table.file, row[table.image_column]
    if matches := table.match(row, tree.index, split):
        image = single_match(matches, file, findings, name)
        images, target = [image] if image else [], matches[0].name
        group = row[table.folder_column] if table.folder_column else row.get(table.group_title, '')
    else:
        folders = table.match_folders(row)
        images = table.folders.images(folders)
        target = group = '/'.join(folders[0]) if folders else ''
        if not images:
            findings.warn_missing_image('rows', file, name)
    if target and table.are_numbers:
        findings.warn(OTHER_ZEROS, f'{name} in {file} for {target}')
    return images, group


def _merge(record: ImageRecord, stated: ImageRecord, findings: Findings) -> None:
    """Merge what another row or table states about an image into its record.

    An image of several splits is in the one furthest from training.

    Raises:
        InputError: if another table has other classes for the image.
    """
    path = record.path
    if record.origin != stated.origin and {*record.labels} != {*stated.labels}:
        raise UnclearError(
            f'{record.origin!r} and {stated.origin!r} have different classes for '
            f'{str(path)!r}; keep one of them.',
            format='table',
            labels=[Path(stated.origin)],
        )
    if record.split and stated.split and record.split != stated.split:
        findings.warn('images in several splits, left out of training', path)
    record.split = furthest([record.split, stated.split])
    if record.origin == stated.origin and record.group and stated.group not in ('', record.group):
        what = 'images of several patients or other groups, kept with the first'
        findings.warn(what, f'{path} of {record.group} and {stated.group}')
    record.group = record.group or stated.group
    record.labels = tuple(dict.fromkeys([*record.labels, *stated.labels]))


def _check_whole_folders(table: ImageTable, names_of: NamesOf) -> None:
    """Raise an ``InputError`` if rows of a folder are about parts of it, such as slices.

    They have different classes, and also differ in columns without classes.
    """
    labels = {*table.labels()}
    first: dict[str, Row] = {}
    for row in table.rows:
        name = row[table.image_column]
        other = first.setdefault(name, row)
        differing = [column for column in table.other_columns if row[column] != other[column]]
        if names_of(row) != names_of(other) and not labels.issuperset(differing):
            classes = ' and '.join(map(repr, [*names_of(other), *names_of(row)]))
            raise InputError(
                f'{str(table.file)!r} has several rows of the folder {name!r}, with the classes '
                f'{classes}; add a column file with the image name of each row.'
            )


def _single_class_records(
    records: Records, has_flag_columns: bool, findings: Findings
) -> Records | None:
    """The images that have exactly one class; None for multi-label data.

    These are data in which more than a few images have several classes. If each class has a column
    of 0 and 1, a single image without exactly one class is enough.
    """
    others = [record for record in records if len(record.labels) != 1]
    count = sum(len(record.labels) > 1 for record in others)
    if count > MAX_STRAY_SHARE * len(records) or (has_flag_columns and others):
        what = (
            'images of several classes or none, so each class is learned separately (multi-label)'
        )
        findings.warn_all(what, (record.path for record in others))
        return None
    what = 'images left out, since a table has no class for them, or two'
    findings.warn_all(what, (record.path for record in others))
    return [record for record in records if len(record.labels) == 1]
