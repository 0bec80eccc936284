"""Tell folders of classes from folders of splits."""

import re
from collections import defaultdict
from collections.abc import Mapping
from itertools import chain, islice, repeat
from pathlib import Path

from anyfolder.errors import InputError, UnclearError
from anyfolder.pixels.image_files import is_os_metadata, walk_files
from anyfolder.wording import option

from .findings import Findings
from .folders_beside_classes import Below, without_copies, without_results
from .identity import FOLDER_KINDS
from .image_tree import RUNS, Tree, is_run
from .listing import readable
from .records import ImageRecord, Records
from .splits import FILLERS, alike_parts, split_in, split_of, words_in

NOTE_SUFFIXES = (
    '.txt',
    '.csv',
    '.tsv',
    '.lst',
    '.json',
    '.md',
    '.mat',
)  # lists and notes


def by_folders(tree: Tree, work_dir: Path | None, findings: Findings) -> Records:
    """The images that lie in folders of classes.

    Raises:
        InputError: if the folders are splits of a data set, but none is for training, or their
            names are unknown.
    """
    tops = {
        top: below for top, below in _tops(tree).items() if below or not _is_of_lists(tree, top)
    }
    splits = {top: split for top in tops if (split := split_of(top))}
    parts = {top: split for top, split in splits.items() if '' not in tops[top]}
    flat = {top for top, split in splits.items() if split != 'train' and {*tops[top]} == {''}}
    classes = {top: below for top, below in tops.items() if top not in parts and top not in flat}
    without_classes = splits.keys() >= classes.keys() and len(classes) + len(flat) > 1
    classes = without_copies(tree, classes, findings)
    if 'train' in parts.values() or without_classes:
        classes = {}
    elif parts and not any(name in classes for top in parts for name in tops[top]):
        raise UnclearError(
            f'{str(tree.folder)!r} has the folder {next(iter(parts))!r} and no folder '
            "'train'; add it, with a folder for each class.",
            images='**/{class}/*',
            splits=dict(train=f'{next(iter(parts))}/**'),
        )
    records = []
    for top, split in parts.items():
        if split == 'val' and not tops[top]:
            raise InputError(
                f'{str(tree.folder / top)!r} has no images in folders of the classes; add '
                'some, or remove it, and a tenth of the training images is held out.'
            )
        found = without_results(tree.folder / top, tops[top], findings)
        _check_part(tree.folder / top, found, split == 'train', work_dir)
        records += [
            ImageRecord(path, split, labels=(readable(name),))
            for name, paths in sorted(found.items())
            for path in paths
        ]
    if 'train' not in parts.values():
        classes = without_results(tree.folder, classes, findings)
        _check_part(tree.folder, classes, True, work_dir)
        records += _of_classes(tree, classes)
    return records


def _tops(tree: Tree) -> dict[str, dict[str, list[Path]]]:
    """The images of each folder by subfolder. A folder that only repeats its parent is skipped."""
    tops: dict[str, dict[str, list[Path]]] = {
        name: defaultdict(list) for name in _subfolders(tree.folder)
    }
    places = {folders: [*islice(chain(folders, repeat('')), 3)] for folders in tree.images_in}
    inner: dict[str, set[str]] = defaultdict(set)
    for top, below, _ in places.values():
        inner[top].add(below)
    for folders, images in tree.images_in.items():
        top, below, deeper = places[folders]
        if len(inner[top]) == 1 and _adds_nothing(top, below):
            below = deeper
        if top:
            tops[top][below] += images
    return tops


def _adds_nothing(part: str, below: str) -> bool:
    """True for the only folder in a split if it repeats the name, or is called images."""
    split = split_of(part)
    return bool(split) and (split_of(below) == split or below.casefold() in FOLDER_KINDS['image'])


def _of_classes(tree: Tree, classes: Mapping[str, Below]) -> Records:
    """The images of class folders, which may contain folders of splits.

    Folders such as ``images_1`` and ``images_2`` are not classes.

    Raises:
        InputError: if they seem to be splits, not classes: all contain two of the same folders, or
            splits with folders, or their names are the same except for ``train`` and ``test``.
    """
    inner = [set(below) for below in classes.values()]
    nested = bool(inner) and all(names and '' not in names for names in inner)
    of_parts = nested and all(split_of(name) for names in inner for name in names)
    deeper = any(
        len(folders) > 2 and folders[0] in classes and split_of(folders[1])
        for folders in tree.images_in
    )
    shared = deeper or (nested and not of_parts and len(set.intersection(*inner)) > 1)
    unclear = alike_parts(classes)
    if shared and len(inner) > 1:
        unclear = list(classes)
    if unclear:
        first, second = unclear[:2]
        parts = [name for name in unclear if split_in(name)]
        splits: dict[str, list[str]] = {}
        for name in parts:
            splits.setdefault(str(split_in(name)), []).append(name)
        raise UnclearError(
            f'are {first!r} and {second!r} in {str(tree.folder)!r} classes or splits of '
            'the data? Name splits train, val and test, with a folder of each class in them, '
            'or give the folder of one split.',
            images='{split}/**/{class}/*' if parts == unclear else '*/**/{class}/*',
            splits=splits if parts == unclear else None,
        )
    bare = {re.sub(r'\d+', '', name) for name in classes}
    if len(classes) > 1 and len(bare) == 1 and not FILLERS.isdisjoint(words_in(bare.pop())):
        return []
    return [
        ImageRecord(path, split_of(below) if of_parts else None, labels=(readable(top),))
        for top, place in classes.items()
        for below, paths in sorted(place.items())
        for path in paths
    ]


def _subfolders(folder: Path) -> list[str]:
    return sorted(
        entry.name
        for entry in folder.iterdir()
        if entry.is_dir() and not (is_run(entry) or is_os_metadata(entry))
    )


def _has_texts_alone(folder: Path) -> bool:
    """True for a folder such as ``meta``, which contains lists and lies next to class folders."""
    files = [*walk_files(folder)]
    return bool(files) and all(file.suffix.lower() in NOTE_SUFFIXES for file in files)


def _is_of_lists(tree: Tree, top: str) -> bool:
    """True for a folder that is named as a split and contains only lists."""
    return bool(split_of(top)) and _has_texts_alone(tree.folder / top)


def _check_part(
    folder: Path, classes: Mapping[str, object], to_train: bool, work_dir: Path | None
) -> None:
    """Raise an ``InputError`` if a run would lie among the classes or a training class is empty."""
    run = work_dir.resolve() if work_dir else None
    real = folder.resolve()
    if run and real in (run, *run.parents) and not {*RUNS} & {*run.relative_to(real).parts[:1]}:
        raise InputError(
            f'{str(work_dir)!r} lies in {str(folder)!r}, where each folder is a class; give '
            f'another {option("work_dir")}, such as {str(folder / RUNS[0] / "run")!r}.',
            option='work_dir',
        )
    if not any(classes.values()):
        return
    empty = [
        name
        for name in _subfolders(folder)
        if not classes.get(name, name not in classes) and not _has_texts_alone(folder / name)
    ]
    if to_train and empty:
        raise InputError(
            f'the folder {str(folder / empty[0])!r} has no images; add some, or remove it.'
        )
