"""Folders of images with a folder for each class."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from anyfolder.errors import InputError, UnclearError
from anyfolder.pixels.image_files import IMAGE_SUFFIXES

from .addresses import ANY_KIND
from .build_listing import ONE_LABEL, SEVERAL_LABELS, Draft, build_listing
from .class_layout import read_by_folders
from .class_names import class_name
from .findings import Findings
from .flat_images import flat_images
from .hidden_labels import check_tables, has_table_of_groups
from .image_sizes import MAX_HEADERS
from .image_tree import Tree
from .label_tables import TableLabels, read_tables
from .label_values import are_measured
from .listing import Listing, folder_class_name, is_encodable
from .name_files import Names, find_names, find_settings
from .names_with_classes import pattern_of_classes_in_names
from .other_labels import check_other_labels
from .path_text import folder_of
from .records import Records
from .split_lists import read_lists
from .splits import split_of
from .tables import WHOLE_NUMBER
from .texts_with_classes import check_texts

LABEL_FILE_SUFFIXES = ('.csv', '.tsv', '.xlsx', '.xls', '.parquet', '.json', '.txt')
REMEDY = (
    'put the images of each class into a folder with its name, or add a train.csv with the columns '
    'file and label'
)


class Labeled(NamedTuple):
    """Images with their classes, as one of the ways to find them gave them: folders or tables.

    Attributes:
        records: the images.
        form: the format of the classes, in words.
        multi_label: whether an image may have several classes.
        tables: the files with the classes.
    """

    records: Records
    form: str
    multi_label: bool = False
    tables: Sequence[Path] = ()


def read_class_folders(
    tree: Tree, work_dir: str | Path | None = None, skip_invalid: bool = False
) -> Listing:
    """Read ``{train,val,test}/<class>/``, ``<class>/{train,val,test}/`` or ``<class>/``.

    Images with a table of their classes are also read, see :mod:`~anyfolder.readers.label_tables`.
    Without validation images, a tenth of each class is held out, at least one image of each class
    that has two. The choice depends only on the name of the class and on its images.

    Args:
        tree: the files of the folder.
        work_dir: the work directory of the run, which must not lie among the classes.
        skip_invalid: whether unreadable images are left out.

    Raises:
        InputError: if the folders are not classes, or fewer than two, or some have no training
            images, if ``work_dir`` lies among them, if a table may have the classes instead, or if
            the folder has boxes, masks or depth.
    """
    check_other_labels(tree)
    findings = Findings(skip_invalid)
    labeled = _read_labels(tree, Path(work_dir) if work_dir else None, findings)
    records = labeled.records
    if len({record.labels for record in records}) < 2:
        check_texts(tree)
    _check_not_empty(tree, records)
    classes = {name for record in records for name in record.labels}
    names = _name_numbers(tree, records, classes)
    if names:
        findings.warn('class numbers that a file names', names[0])
    elif are_measured(classes, are_labels=True):
        findings.warn(
            'classes that are numbers, whose order and distance are not learned; merge them into a '
            "few such as 'low' and 'high'",
            f'{min(classes)} and {max(classes)}',
        )
    lists = read_lists(tree, findings, used={*labeled.tables}, classes=classes)
    if not labeled.tables:
        records += flat_images(tree, records, lists, findings)
    draft = Draft(
        SEVERAL_LABELS if labeled.multi_label else ONE_LABEL,
        labeled.form,
        tree,
        records,
        names=names[1] if names else (),
        used_files=[*labeled.tables, names and names[0]],
        lists=lists,
        max_headers=MAX_HEADERS,
        stratum=lambda record: '' if labeled.multi_label else record.labels[0],
        hint=REMEDY + _note_unread_table(tree, records, {*labeled.tables, *lists.files}),
    )
    listing = build_listing(draft, findings)
    listing.multi_label = labeled.multi_label
    return listing


def _name_numbers(tree: Tree, records: Records, classes: Collection[str]) -> Names | None:
    """The file that names classes whose labels are numbers from 0 on, and the names.

    The numbers in the records are replaced by the names. None without such numbers and a file.
    """
    if not classes or not all(map(WHOLE_NUMBER.fullmatch, classes)):
        return None
    if (named := find_names(tree, find_settings(tree))) is None:
        return None
    file, names = named
    numbers = {*map(int, classes)}
    if max(numbers) >= len(names) or not all(names[i] for i in numbers):
        return None
    for record in records:
        record.labels = tuple(class_name(names[int(label)]) for label in record.labels)
    return file, [class_name(name) for name in names if name]


def _read_labels(tree: Tree, work_dir: Path | None, findings: Findings) -> Labeled:
    """The images with their classes: by their folders, or else by tables.

    If the folders have fewer than two classes, the only folder with images is tried as the root.
    """
    form, inner, tables = 'folders of classes', tree, None
    while True:
        try:
            records = read_by_folders(inner, work_dir, findings)
        except InputError:  # tables can have the classes, whatever the folders are
            listed = read_tables(tree, findings) if tables is None else tables
            if 2 * len(listed.records) > len(tree.images):
                return _label_by_tables(tree, listed, findings)
            raise
        if len({record.labels for record in records}) >= 2 and not has_table_of_groups(tree):
            _warn_folders(records, findings)
            check_tables(tree, records, findings)
            return Labeled(records, form)
        if tables is None:
            tables = read_tables(tree, findings)
            if any(record.split in (None, 'train') for record in tables.records):
                return _label_by_tables(tree, tables, findings)
        deeper = _only_folder(inner)
        if deeper is None:
            return Labeled(records, form)
        inner = Tree(deeper, tree.probes)


def _warn_folders(records: Records, findings: Findings) -> None:
    """Note folders whose names are not UTF-8, and folders within the folder of a class."""
    folders = {(folder_of(record.path), record.labels) for record in records}
    findings.warn_all(
        'names of folders not in UTF-8, read as Windows-1252; rename those with wrong letters',
        sorted({name for folder, (name,) in folders if not is_encodable(Path(folder).name)}),
    )
    findings.warn_all(
        'folders within those of classes, whose images belong to the class',
        sorted(
            Path(folder)
            for folder, labels in folders
            if _is_within_class(Path(folder).name, labels)
        ),
    )


def _label_by_tables(tree: Tree, tables: TableLabels, findings: Findings) -> Labeled:
    """The labels in tables. Folders that might be taken for classes are noted."""
    classes_in: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
    for record in tables.records:
        names = [name for name in tree.parts(record.path) if name.casefold() not in ANY_KIND]
        if names and not split_of(names[-1]):
            classes_in.setdefault(tree.parts(record.path), set()).add(record.labels)
    if any(len(classes) > 1 for classes in classes_in.values()):
        findings.warn_all(
            'folders that are not classes, since tables have other classes for their images',
            map('/'.join, sorted(classes_in) if len(classes_in) > 1 else ()),
        )
    form = 'images and a table of classes'
    return Labeled(tables.records, form, tables.multi_label, tables.files)


def _note_unread_table(tree: Tree, records: Records, read: Collection[Path]) -> str:
    """The end of a hint that names a table or list that was not read; empty if there is none."""
    others = (
        file
        for suffix in LABEL_FILE_SUFFIXES
        for file in tree.others
        if file.suffix.lower() == suffix and file not in read
    )
    first = next(others, None)
    if not first:
        return ''
    return (
        f'; {str(first)!r} is not read, since it is not a .csv with a column of names such as '
        f'{records[0].path.name!r}'
    )


def _only_folder(tree: Tree) -> Path | None:
    """The one folder with all images in subfolders: ``images/<class>/`` next to text files."""
    tops = {folders[:2] for folders in tree.images_in}
    if len({top[:1] for top in tops}) != 1 or not all(len(top) == 2 for top in tops):
        return None
    first = next(iter(tops))[0]
    return None if split_of(first) else tree.folder / first


def _is_within_class(name: str, labels: Sequence[str]) -> bool:
    """True for the name of a folder that is neither the class of its images nor a split."""
    return folder_class_name(name) not in labels and not split_of(name)


def _check_not_empty(tree: Tree, records: Records) -> None:
    """Raise an ``InputError`` that says what is missing if no image has a class."""
    if records:
        return
    if pattern_and_example := pattern_of_classes_in_names(tree.images):
        pattern, first = pattern_and_example
        raise UnclearError(
            f'the images in {str(tree.folder)!r} are not in folders of classes, and their names '
            f'seem to contain the classes, such as {first.name!r}; {REMEDY}.',
            images=pattern,
        )
    if tree.images:
        raise InputError(
            f'the images in {str(tree.folder)!r} are not in folders of classes; {REMEDY}.'
        )
    raise InputError(
        f'there are no images in {str(tree.folder)!r}; their names end in '
        f'{", ".join(IMAGE_SUFFIXES)}, and those of each class must be in a folder with its name.'
    )
