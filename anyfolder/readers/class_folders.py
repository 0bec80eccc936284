"""Folders of images with a folder for each class."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from anyfolder.errors import InputError
from anyfolder.pixels.image_files import IMAGE_SUFFIXES

from .class_layout import by_folders
from .division import divide
from .findings import Findings
from .identity import folder_of
from .image_tree import MOST_HEADERS, Tree, read_sizes, warn_unused
from .label_tables import read_tables
from .label_values import are_measured, numbers_in
from .listing import Listing, is_encodable, readable
from .name_files import find_names
from .records import ImageRecord, Records
from .split_lists import read_lists
from .splits import Split, split_of

TABLES = ('.csv', '.tsv', '.xlsx', '.xls', '.parquet', '.json', '.txt')  # suffixes
REMEDY = (
    'put the images of each class into a folder with its name, or add a train.csv with the columns '
    'file and label'
)


def read_class_folders(
    tree: Tree,
    work_dir: str | Path | None = None,
    skip_invalid: bool = False,
    around: Tree | None = None,
) -> Listing:
    """Read ``{train,val,test}/<class>/``, ``<class>/{train,val,test}/`` or ``<class>/`` in a tree.

    Or images and a table of their classes, see :mod:`~anyfolder.readers.label_tables`.
    Without images to validate, a tenth of each class is held out, at least one image of each class
    that has two. Which images of a class these are follows from its name and its images alone.

    Args:
        tree: the files of the folder.
        work_dir: of the run, which may not lie among the classes.
        skip_invalid: whether images that cannot be read as images are left out.
        around: the files of a folder around it, which has lists of the parts.

    Raises:
        InputError: if its folders are no classes, or fewer than two, or some have no images to
            train on, or if ``work_dir`` lies among them.
    """
    findings, whole = Findings(skip_invalid), around or tree
    place = Path(work_dir) if work_dir else None
    records, form = by_folders(tree, place, findings), 'folders of classes'
    multi_label, tables = False, list[Path]()
    _warn_folders(records, findings)
    if len({record.labels for record in records}) >= 2:
        tables = _divide_by_lists(whole, records, findings)
        _compare_tables(whole, records, findings)
    else:
        listed, multi_label, tables = read_tables(tree, findings)
        if listed:
            records, form = listed, 'images and a table of classes'
        elif inner := _only_folder(tree):
            return read_class_folders(Tree(inner, tree.probes), work_dir, skip_invalid, whole)
    warn_unused(whole, records, tables, findings)
    _check_any(tree, records)
    records = read_sizes(tree, records, findings, MOST_HEADERS)
    findings.check()
    _check_names(tree, whole, records, multi_label, findings)
    parts, held_out, known = divide(
        records, tree, findings, lambda record: '' if multi_label else record.labels[0]
    )
    classes = tuple(sorted(known))
    return Listing(form, tree.folder, classes, parts, held_out, findings, multi_label=multi_label)


def _warn_folders(records: Records, findings: Findings) -> None:
    """Note folders whose names are not in UTF-8, and those within the folder of a class."""
    places = {(folder_of(record.path), record.labels) for record in records}
    findings.warn_all(
        'names of folders not in UTF-8, read as Windows-1252; rename those with wrong letters',
        sorted({name for place, (name,) in places if not is_encodable(Path(place).name)}),
    )
    findings.warn_all(
        'folders within those of classes, whose images are of the class',
        sorted(Path(place) for place, labels in places if _is_deeper(Path(place).name, labels)),
    )


def _check_names(
    tree: Tree, whole: Tree, records: Records, multi_label: bool, findings: Findings
) -> None:
    """Note classes that are numbers, and raise a ``InputError`` for a single one."""
    found = {name for record in records for name in record.labels}
    if are_measured(found, named=True) or numbers_in(found)[1]:
        findings.warn(
            'classes that are numbers or dates, whose order and distance are not learned; join '
            "them to a few such as 'low' and 'high'",
            f'{min(found)} and {max(found)}',
        )
    if len(found) == 1 and not multi_label:
        raise InputError(
            f'{str(tree.folder)!r} has one class, {found.pop()!r}'
            f'{_unread(whole, records)}; a classifier needs two or more: {REMEDY}.'
        )


def _unread(tree: Tree, records: Records) -> str:
    """What is to be said of a table that gives no image a class."""
    others = (file for suffix in TABLES for file in tree.others if file.suffix.lower() == suffix)
    first = next(others, None)
    if not first:
        return ''
    return (
        f', and {str(first)!r} is not read, since it is no .csv with a column of names such as '
        f'{records[0].path.name!r}'
    )


def _compare_tables(tree: Tree, records: Records, findings: Findings) -> None:
    """Note a table that says several classes of the images of one folder."""
    with suppress(InputError):  # it is of something else
        listed, _, tables = read_tables(tree, Findings())
        said = {record.path: record.labels for record in listed}
        pairs = {(record.labels, said[record.path]) for record in records if record.path in said}
        if len(pairs) > len({labels for labels, _ in pairs}):
            what = (
                'tables left out, which say other classes than the folders; to read one, put its '
                'images into one folder'
            )
            findings.warn_all(what, tables)


def _divide_by_lists(tree: Tree, records: Records, findings: Findings) -> list[Path]:
    """Give the images of no folder of a part that of a list; the lists that do.

    Where folders are parts, images in no folder of a class have the labels of a list.
    """
    if not any(record.split for record in records):
        lists = read_lists(tree, findings)
        # Without a list of those to train on, all others are.
        others: Split | None = None if 'train' in lists.splits.values() else 'train'
        for record in records:
            record.split = lists.splits.get(record.path, others)
        return [*lists.files]
    own = {record.path: record.labels[0] for record in records}
    flat = {path for path in tree.images if path not in own and tree.split(path) in ('val', 'test')}
    if not flat:
        return []
    lists = read_lists(tree, findings)
    classes, numbers = sorted({*own.values()}), dict[str, str]()
    listed = sorted(flat & lists.labels.keys())
    if '0' in map(lists.labels.get, listed) and not all(map(str.isdecimal, classes)):
        named = find_names(tree, None)
        order = named[1] if named and sorted(named[1]) == classes else classes
        numbers = {str(number): name for number, name in enumerate(order)}
    numbers |= {label: own[path] for path, label in lists.labels.items() if label and path in own}
    for path in listed:
        label = lists.labels[path]
        # In a table of ImageNet, boxes follow.
        tried = (numbers.get(label), label, label.split(' ')[0])
        if name := next((one for one in tried if one in classes), None):
            records.append(ImageRecord(path, tree.split(path), labels=(name,)))
            findings.warn(
                'images in no folder of a class, which a list gives one', f'{path}: {name}'
            )
        elif label:
            what = 'images have a class in a list that no folder to train on has'
            remedy = 'write the names of the folders, or count them from 0'
            findings.reject(what, remedy, f'{label!r} of {path}')
    return [*lists.files]


def _only_folder(tree: Tree) -> Path | None:
    """The one folder with all images in subfolders: ``images/<class>/`` next to text files."""
    tops = {folders[:2] for folders in tree.images_in}
    if len({top[:1] for top in tops}) != 1 or not all(len(top) == 2 for top in tops):
        return None
    first = next(iter(tops))[0]
    return None if split_of(first) else tree.folder / first


def _is_deeper(name: str, labels: Sequence[str]) -> bool:
    """True for the name of a folder that is neither the class of its images nor a part."""
    return readable(name) not in labels and not split_of(name)


def _check_any(tree: Tree, records: Records) -> None:
    if records:
        return
    if tree.images:
        raise InputError(
            f'the images in {str(tree.folder)!r} are not in folders of classes; {REMEDY}.'
        )
    raise InputError(
        f'there are no images in {str(tree.folder)!r}; their names end in '
        f'{", ".join(IMAGE_SUFFIXES)}, and those of each class lie in a folder with its name.'
    )
