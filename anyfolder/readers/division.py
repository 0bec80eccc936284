"""Divide images into training, validation and test splits, each file in one of them."""

import os
import zlib
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from itertools import chain
from pathlib import Path

import numpy as np

from anyfolder.errors import InputError, UnclearError

from .class_names import near_twins, twin_key
from .findings import Findings
from .folder_groups import find_groups
from .image_tree import Tree
from .object_checks import without_repeats
from .probe import digest_of
from .records import ImageRecord, Parts, Records
from .splits import SEED, SPLITS, Split, hold_out


def assign_splits(
    records: Records,
    tree: Tree,
    findings: Findings,
    stratum: Callable[[ImageRecord], str] = lambda record: '',
) -> tuple[Parts, bool]:
    """Assign images to splits. Test images are used neither for training nor for validation.

    Images without a split are for training, but are left out if others are assigned to training. If
    there are none for validation, a tenth is held out, always the same images, in whole folders if
    these are groups (:mod:`.folder_groups`).

    Args:
        records: the images.
        tree: the files of the folder.
        findings: collects omissions and copies.
        stratum: returns the stratum of an image, such as its class; a tenth of each stratum is held
            out. Default: all images are one.

    Returns:
        The images of each split, and whether the validation images were held out.

    Raises:
        InputError: if there are no training images, or too few to hold one out.
    """
    parts: Parts = {name: [] for name in SPLITS}
    has_train = any(record.split == 'train' for record in records)
    for record in _merge_repeated(records, findings):
        if record.split is None and has_train:
            findings.warn(
                'images left out, since they are in no folder or list of a split',
                record.path.relative_to(tree.folder),
            )
        else:
            parts[record.split or 'train'].append(record)
    if not parts['train']:
        have = ' and '.join(name for name in SPLITS if parts[name]) or 'no split'
        raise UnclearError(
            f'{str(tree.folder)!r} has images for {have} and none to train on; put those '
            "into a folder 'train'.",
            splits=dict(train='**'),
        )
    held_out = not parts['val']
    if held_out:
        _hold_out(parts, tree, stratum, find_groups(parts['train'], tree, findings))
    _warn_copies(parts, findings)
    return parts, held_out


def furthest(splits: Iterable[Split | None]) -> Split | None:
    """The split that is furthest from training, or None without one."""
    present = {*splits}
    return next((split for split in reversed(SPLITS) if split in present), None)


def _hold_out(
    parts: Parts, tree: Tree, stratum_of: Callable[[ImageRecord], str], train_only: Collection[str]
) -> None:
    """Move a tenth of each stratum from training to validation. Images of a group stay together.

    A stratum is a value of ``stratum_of``, such as a class. Each group in ``train_only`` is a
    stratum of its own, so none of it is taken. If all strata have one group, a tenth of the others
    is taken, or of all if there are fewer than two others.
    """
    groups_by_name: dict[str, Records] = {}
    for record in parts['train']:
        groups_by_name.setdefault(record.group or str(record.path), []).append(record)
    strata: dict[str, list[Records]] = {}
    for name, group in groups_by_name.items():
        stratum = name if name in train_only else stratum_of(group[0])
        strata.setdefault(stratum, []).append(group)
    has_groups = 1 < len(groups_by_name) < len(parts['train'])
    if has_groups and all(len(groups) == 1 for groups in strata.values()):
        kept = {name: [group] for name, group in groups_by_name.items() if name in train_only}
        free = [group for name, group in groups_by_name.items() if name not in train_only]
        strata = {**kept, '': free} if len(free) > 1 else {'': [*groups_by_name.values()]}
    parts['train'] = []
    for stratum, groups in strata.items():
        seed = (SEED, zlib.crc32(os.fsencode(stratum))) if stratum else SEED
        held, others = hold_out(groups, np.random.default_rng(seed))
        parts['val'] += chain(*held)
        parts['train'] += chain(*others)
    if not parts['val']:
        where = '' if '' in strata else ' of any class'
        raise InputError(
            f'{str(tree.folder)!r} has too few images{where} to hold one out; add some, or '
            "a folder 'val' next to 'train'."
        )


def _warn_copies(parts: Parts, findings: Findings) -> None:
    """Warn of files of equal content: copies of training images, and copies with other labels."""
    by_size: dict[int, list[tuple[Split, ImageRecord]]] = {}
    for split in SPLITS:
        for record in parts[split]:
            with suppress(OSError):  # an image that was not probed may no longer exist
                by_size.setdefault(os.stat(record.path).st_size, []).append((split, record))
    for size, same_size in by_size.items():
        if len(same_size) == 1:
            continue
        originals: dict[str, tuple[Split, ImageRecord]] = {}  # the first file of each digest
        for split, record in same_size:
            digest = record.digest or _digest(record.path, size)
            original_split, original = originals.setdefault(digest, (split, record))
            if original is record:
                continue
            if split != 'train' and original_split == 'train':
                findings.warn(
                    'validation or test images that are copies of a training image', record.path
                )
            if _labels_of(record) != _labels_of(original):
                findings.warn(
                    'copies of one image with different labels',
                    f'{original.path} and {record.path}',
                )


def _digest(path: Path, size: int) -> str:
    file = os.open(path, os.O_RDONLY | getattr(os, 'O_BINARY', 0))  # half the time of open()
    try:
        return digest_of(os.read(file, size))
    finally:
        os.close(file)


def _labels_of(record: ImageRecord) -> object:
    """The labels of an image, in a comparable form."""
    return (
        {*record.labels},
        sorted((instance.name, *map(round, instance.box)) for instance in record.instances),
    )


def _merge_repeated(records: Records, findings: Findings) -> Records:
    """Each file once, with all its annotated objects, in the split furthest from training.

    Files with different labels in two annotations are rejected.
    """
    by_path: dict[str, ImageRecord] = {}  # paths are slow to compare
    unclear = set()
    for record in records:
        first = by_path.setdefault(str(record.path), record)
        if first is record:
            continue
        if _labels_of(first) != _labels_of(record) and first.origin != record.origin:
            findings.reject(
                'images have two label files with different content',
                'keep one of them',
                f'{record.path} in {first.origin} and {record.origin}',
            )
            unclear.add(str(record.path))
        splits = {first.split, record.split} - {None}
        if len(splits) > 1:
            findings.warn('images in several splits, left out of training', record.path)
        else:
            findings.warn('images listed twice, counted once', record.path)
        first.split = furthest(splits)
        first.instances, _ = without_repeats([*first.instances, *record.instances])
    if unclear:
        findings.check(sum(len(record.instances) for record in records))
    return [record for path, record in by_path.items() if path not in unclear]


def check_classes(parts: Parts, held_out: bool, findings: Findings) -> set[str]:
    """The classes that have training data. Similar names are noted.

    Args:
        parts: the images of each split.
        held_out: whether the validation images were held out; they may have classes of their own.
        findings: collects similar names.

    Raises:
        InputError: if the validation or test split has a class without training data.
    """
    trained = {name for record in parts['train'] for name in record.names}
    alike = near_twins(trained)
    findings.warn_all(
        'classes whose names only differ in case, blanks, look-alike letters or (1)',
        (f'{name!r} and {first!r}' for name, first in alike.items() if name != first),
    )
    checked_splits: tuple[Split, ...] = ('test',) if held_out else ('val', 'test')
    for split in checked_splits:
        for record in parts[split]:
            foreign = sorted({*record.names} - trained)
            if foreign:
                near = next(
                    (name for name in trained if twin_key(name) == twin_key(foreign[0])), ''
                )
                hint = f', only of {near!r}' if near else ''
                purpose = 'to validate' if split == 'val' else 'to test'
                raise InputError(
                    f'{record.origin or str(record.path)!r}, {purpose}, has the class '
                    f'{foreign[0]!r}, which has no training data{hint}; remove it, or '
                    'add some there.'
                )
    return trained
