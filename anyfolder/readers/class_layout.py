"""Tell folders of classes from folders of splits.

``top`` is the name of a folder directly in the data folder, ``below`` that of a folder within it.
Either can be the class, and the other the split.
"""

import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from anyfolder.errors import InputError, UnclearError
from anyfolder.pixels.image_files import is_os_metadata, walk_files
from anyfolder.wording import option

from .addresses import FOLDER_KINDS
from .findings import Findings
from .folders_beside_classes import ImagesBySubfolder, without_copies, without_results
from .image_tree import RUN_FOLDERS, Tree, is_run
from .listing import folder_class_name
from .records import ImageRecord, Records
from .splits import FILLERS, Split, alike_splits, split_in, split_of, words_in

NOTE_SUFFIXES = ('.txt', '.csv', '.tsv', '.lst', '.json', '.md', '.mat')  # lists and notes


def read_by_folders(tree: Tree, work_dir: Path | None, findings: Findings) -> Records:
    """The images that lie in folders of classes.

    Raises:
        InputError: if the folders are splits of a data set, but none is for training, or their
            names are unknown.
    """
    tops = {
        top: below
        for top, below in _images_by_top(tree).items()
        if below or not _is_list_folder(tree, top)
    }
    split_folders, classes = _splits_and_classes(tree, tops, findings)
    records = []
    for top, split in split_folders.items():
        if split == 'val' and not tops[top]:
            raise InputError(
                f'{str(tree.folder / top)!r} has no images in folders of the classes; add '
                'some, or remove it, and a tenth of the training images is held out.'
            )
        images_of_class = without_results(tree.folder / top, tops[top], findings)
        _check_class_folders(tree.folder / top, images_of_class, split == 'train', work_dir)
        records += [
            ImageRecord(path, split, labels=(folder_class_name(name),))
            for name, paths in sorted(images_of_class.items())
            for path in paths
        ]
    if 'train' not in split_folders.values():
        classes = without_results(tree.folder, classes, findings)
        _check_class_folders(tree.folder, classes, to_train=True, work_dir=work_dir)
        records += _read_class_folders(tree, classes)
    return records


def _splits_and_classes(
    tree: Tree, tops: Mapping[str, ImagesBySubfolder], findings: Findings
) -> tuple[dict[str, Split], dict[str, ImagesBySubfolder]]:
    """The split of each folder that has folders of classes in it, and the folders of classes.

    The latter are empty if one of the former is for training, or if all folders are of splits.

    Raises:
        InputError: if there are folders of splits, but none for training.
    """
    splits = {top: split for top in tops if (split := split_of(top))}
    # Folders of splits, with the images in folders of classes, or without such folders.
    split_folders = {top: split for top, split in splits.items() if '' not in tops[top]}
    flat_splits = {
        top for top, split in splits.items() if split != 'train' and {*tops[top]} == {''}
    }
    classes = {
        top: below
        for top, below in tops.items()
        if top not in split_folders and top not in flat_splits
    }
    # True if all folders are splits without folders of classes, so they are not classes either.
    without_classes = splits.keys() >= classes.keys() and len(classes) + len(flat_splits) > 1
    classes = without_copies(tree, classes, findings)
    if 'train' in split_folders.values() or without_classes:
        return split_folders, {}
    if split_folders and not any(name in classes for top in split_folders for name in tops[top]):
        first = next(iter(split_folders))
        raise UnclearError(
            f'{str(tree.folder)!r} has the folder {first!r} and no folder '
            "'train'; add it, with a folder for each class.",
            images='**/{class}/*',
            splits=dict(train=f'{first}/**'),
        )
    return split_folders, classes


def _images_by_top(tree: Tree) -> dict[str, dict[str, list[Path]]]:
    """The images of each folder by subfolder; ``''`` for images in the folder itself.

    A level of folders that adds nothing is skipped, see :func:`_is_redundant`.
    """
    tops: dict[str, dict[str, list[Path]]] = {
        name: defaultdict(list) for name in _subfolders(tree.folder)
    }
    levels = {folders: (*folders, '', '', '')[:3] for folders in tree.images_in}
    inner: dict[str, set[str]] = defaultdict(set)
    for top, below, _ in levels.values():
        inner[top].add(below)
    for folders, images in tree.images_in.items():
        top, below, deeper = levels[folders]
        if len(inner[top]) == 1 and _is_redundant(top, below):
            below = deeper
        if top:
            tops[top][below] += images
    return tops


def _is_redundant(top: str, below: str) -> bool:
    """True for the only folder in a split if it repeats the name, or is called images."""
    split = split_of(top)
    return bool(split) and (split_of(below) == split or below.casefold() in FOLDER_KINDS['image'])


def _read_class_folders(tree: Tree, classes: Mapping[str, ImagesBySubfolder]) -> Records:
    """The images of class folders, which may contain folders of splits.

    Empty if the only folders are such as ``images_1`` and ``images_2``, which are not classes.

    Raises:
        InputError: if they seem to be splits, not classes: all contain two of the same folders, or
            splits with folders, or their names are the same except for ``train`` and ``test``.
    """
    inner = [set(below) for below in classes.values()]
    are_nested = bool(inner) and all(names and '' not in names for names in inner)
    contain_splits = are_nested and all(split_of(name) for names in inner for name in names)
    # CLASS/train/FOLDER: the folder in a split may be the class.
    are_deeper = any(
        len(folders) > 2 and folders[0] in classes and split_of(folders[1])
        for folders in tree.images_in
    )
    share_folders = are_nested and not contain_splits and len(set.intersection(*inner)) > 1
    unclear = alike_splits(classes)
    if (are_deeper or share_folders) and len(inner) > 1:
        unclear = list(classes)
    if unclear:
        first, second = unclear[:2]
        named_after_splits = [name for name in unclear if split_in(name)]
        splits: dict[str, list[str]] = {}
        for name in named_after_splits:
            splits.setdefault(str(split_in(name)), []).append(name)
        raise UnclearError(
            f'are {first!r} and {second!r} in {str(tree.folder)!r} classes or splits of '
            'the data? Name splits train, val and test, with a folder of each class in them, '
            'or give the folder of one split.',
            images='{split}/**/{class}/*' if named_after_splits == unclear else '*/**/{class}/*',
            splits=splits if named_after_splits == unclear else None,
        )
    bare = {re.sub(r'\d+', '', name) for name in classes}
    if len(classes) > 1 and len(bare) == 1 and not FILLERS.isdisjoint(words_in(bare.pop())):
        return []
    return [
        ImageRecord(
            path, split_of(below) if contain_splits else None, labels=(folder_class_name(top),)
        )
        for top, images_below in classes.items()
        for below, paths in sorted(images_below.items())
        for path in paths
    ]


def _subfolders(folder: Path) -> list[str]:
    return sorted(
        entry.name
        for entry in folder.iterdir()
        if entry.is_dir() and not (is_run(entry) or is_os_metadata(entry))
    )


def _has_only_texts(folder: Path) -> bool:
    """True for a folder such as ``meta``, which contains lists and lies next to class folders."""
    files = [*walk_files(folder)]
    return bool(files) and all(file.suffix.lower() in NOTE_SUFFIXES for file in files)


def _is_list_folder(tree: Tree, top: str) -> bool:
    """True for a folder that is named as a split and contains only lists."""
    return bool(split_of(top)) and _has_only_texts(tree.folder / top)


def _check_class_folders(
    folder: Path, classes: Mapping[str, object], to_train: bool, work_dir: Path | None
) -> None:
    """Raise an ``InputError`` if a run would lie among the classes or a training class is empty."""
    run = work_dir.resolve() if work_dir else None
    real = folder.resolve()
    # A folder such as work_dirs is not taken for a class, so a run may lie in it.
    if (
        run
        and real in (run, *run.parents)
        and not {*RUN_FOLDERS} & {*run.relative_to(real).parts[:1]}
    ):
        raise InputError(
            f'{str(work_dir)!r} lies in {str(folder)!r}, where each folder is a class; give '
            f'another {option("work_dir")}, such as {str(folder / RUN_FOLDERS[0] / "run")!r}.',
            option='work_dir',
        )
    if not any(classes.values()):
        return
    empty = [
        name
        for name in _subfolders(folder)
        if name in classes and not classes[name] and not _has_only_texts(folder / name)
    ]
    if to_train and empty:
        raise InputError(
            f'the folder {str(folder / empty[0])!r} has no images; add some, or remove it.'
        )
