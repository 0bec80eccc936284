"""Find tables that may hold the classes of images whose folders are not classes.

Folders can be patients, videos or cameras, with the classes in a table next to them. If a table
names most of the images and disagrees with the folders, the user must choose.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from anyfolder.errors import InputError, UnclearError
from anyfolder.wording import option

from .class_names import class_name
from .column_titles import GROUP_TITLE_PATTERN
from .findings import MAX_STRAY_SHARE, Findings
from .image_tree import Tree
from .label_tables import find_tables, names_in
from .likely_boxes import may_have_boxes
from .records import Records
from .table_columns import ImageTable
from .tables import WHOLE_NUMBER

Rows = Mapping[Path, list[Mapping[str, str]]]  # by image


def check_tables(tree: Tree, records: Records, findings: Findings) -> None:
    """Compare the tables of a folder with the folders of its images.

    Args:
        tree: the files of the folder.
        records: the images, with the name of their folder as the class.
        findings: collects tables of few images with other classes.

    Raises:
        InputError: if a table of most images has other classes, may have them while the folders
            have numbers as names, or may have boxes of other classes.
    """
    folder_of = {record.path: record.labels[0] for record in records}
    tables = []
    with suppress(InputError):  # a table about something else
        tables = [(table, _rows_of(table, tree, folder_of)) for table in find_tables(tree)]
    have_most_images = 2 * sum(len(rows) for _, rows in tables) > len(records)
    for table, rows in tables:
        if 2 * len(rows) > len(records) and may_have_boxes(table, tree):
            _check_boxes(table, rows, folder_of)
        if rows and (fault := _fault(table, rows, folder_of)):
            if have_most_images:
                raise UnclearError(fault, format='table', labels=[table.file])
            what = (
                'tables left out, since their classes are not the folders; to read one, put its '
                'images into one folder'
            )
            findings.leave_out_files(what, [table.file])
        elif rows and table.is_of_classes:
            what = 'tables left out, since they agree with the folders of classes, maybe renamed'
            findings.leave_out_files(what, [table.file])


def _check_boxes(table: ImageTable, rows: Rows, folder_of: Mapping[Path, str]) -> None:
    """Raise an ``UnclearError`` unless a column of the table corresponds to the folders."""
    for column in table.rows[0]:
        pairs = {
            (row[column], folder_of[image])
            for image, rows_of_image in rows.items()
            for row in rows_of_image
        }
        if _are_one_to_one(pairs):
            return
    shown = ', '.join([*rows.values()][-1][0].values())
    raise UnclearError(
        f'{str(table.file)!r} may have boxes of the images, as in {shown!r}, which are in folders '
        f'such as {next(iter(folder_of.values()))!r}; to read the boxes, give '
        f'{option("task", "detection")}, and if the folders are the classes, move the table away.',
        format='folders',
    )


def _are_one_to_one(pairs: Collection[tuple[str, str]]) -> bool:
    """True if there are several pairs, and each value is in only one of them."""
    firsts, seconds = zip(*pairs, strict=True)
    return len(pairs) == len({*firsts}) == len({*seconds}) > 1


def has_table_of_groups(tree: Tree) -> bool:
    """True if a table has classes for folders that its title calls patients or similar groups.

    The folders are not classes then.
    """
    with suppress(InputError):
        return any(
            table.of_folders
            and table.is_of_classes
            and GROUP_TITLE_PATTERN.fullmatch(table.image_column)
            for table in find_tables(tree)
        )
    return False


def _rows_of(table: ImageTable, tree: Tree, folder_of: Mapping[Path, str]) -> Rows:
    """The rows of a table for each image in ``folder_of``; other images are left out."""
    rows: dict[Path, list[Mapping[str, str]]] = {}
    for row in table.rows:
        split = table.stated_split(row) if table.splits else tree.stated_split(table.file)
        images = table.match(row, tree.index, split) or table.folders.images(
            table.match_folders(row)
        )
        for image in images:
            if image in folder_of:
                rows.setdefault(image, []).append(row)
    return rows


def _fault(table: ImageTable, rows: Rows, folder_of: Mapping[Path, str]) -> str:
    """How a table contradicts the folders, as a sentence with the remedy; empty if it does not."""
    folders = {*folder_of.values()}
    are_numbered = len({re.sub(r'\d+', '', name) for name in folders}) == 1
    remedy = (
        "if the table has the classes, put these folders into a folder 'images' next to it; "
        'if the folders are the classes, move the table away.'
    )
    classes_of: dict[Path, frozenset[str]] = {}
    if table.is_of_classes or _has_only_words(table):
        with suppress(InputError):  # numbers may not be classes
            discarded = Findings()
            names_of = names_in(table, discarded)
            classes_of = {
                image: found
                for image, rows_of_image in rows.items()
                if (found := frozenset(name for row in rows_of_image for name in names_of(row)))
            }
    if classes_of:
        if image := _contradiction(classes_of, folder_of, are_numbered):
            names = ' and '.join(map(repr, sorted(classes_of[image])))
            return (
                f'{str(table.file)!r} has the class {names} for {str(image)!r}, which is in the '
                f'folder {folder_of[image]!r}; {remedy}'
            )
        return ''
    columns = [
        name for name in table.other_columns if _may_be_classes([row[name] for row in table.rows])
    ]
    if are_numbered and columns and not _names_folders(table, rows, folder_of):
        first, second = sorted(folders)[:2]
        return (
            f'the folders {first!r} and {second!r} have numbers for names, and {str(table.file)!r} '
            f'may have the classes of their images, as in the columns {", ".join(columns)}; call '
            f'the one with the classes label; {remedy}'
        )
    return ''


def _contradiction(
    classes_of: Mapping[Path, Collection[str]], folder_of: Mapping[Path, str], are_numbered: bool
) -> Path | None:
    """An image whose class in a table contradicts its folder, if there are more than a few.

    The names can differ, for example if classes have numbers in the table. One class for several
    folders is a broader class, unless the folder names are numbers, such as patients.
    """
    by_folder: dict[str, dict[frozenset[str], Path]] = {}
    for image, names in classes_of.items():
        by_folder.setdefault(folder_of[image], {})[frozenset(names)] = image
    classes = {names for image_of_names in by_folder.values() for names in image_of_names}
    folder_names = {*map(class_name, folder_of.values())}
    if all(len(names) == 1 and names <= folder_names for names in classes):
        wrong = [
            image
            for image, names in classes_of.items()
            if {*names} != {class_name(folder_of[image])}
        ]
        return wrong[0] if len(wrong) > MAX_STRAY_SHARE * len(classes_of) else None
    for image_of_names in by_folder.values():
        if len(image_of_names) > 1:  # images of one folder have different classes
            return [*image_of_names.values()][1]
    return next(iter(classes_of)) if are_numbered and len(classes) < len(by_folder) else None


def _may_be_classes(values: Sequence[str]) -> bool:
    """True for two or more values, each of two or more rows on average."""
    return 1 < len({*values}) <= len(values) / 2


def _has_only_words(table: ImageTable) -> bool:
    """True if a table has one other column, with a few words: classes, whatever its title."""
    values = [row[name] for row in table.rows for name in table.other_columns]
    words = all(any(map(str.isalpha, value)) for value in values)
    return len(table.other_columns) == 1 and words and _may_be_classes(values)


def _names_folders(table: ImageTable, rows: Rows, folder_of: Mapping[Path, str]) -> bool:
    """True if a column contains the folder names, as a word in its values or as a number."""
    return any(
        all(
            _contains_name(row[column], folder_of[image])
            for image, rows_of_image in rows.items()
            for row in rows_of_image
        )
        for column in table.other_columns
    )


def _contains_name(value: str, folder: str) -> bool:
    if WHOLE_NUMBER.fullmatch(value) and WHOLE_NUMBER.fullmatch(folder):
        return int(value) == int(folder)
    return folder in (value, *re.split(r'[\s,;/]+', value))
