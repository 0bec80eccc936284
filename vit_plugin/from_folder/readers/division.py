"""Divide photographs into those to train on, to validate and to test, each file once."""

import os
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path

import numpy as np

from vit_plugin.errors import ConfigError

from .class_names import near_twins, twin_key
from .findings import Findings
from .instances import without_repeats
from .photos import Tree
from .records import Photo
from .splits import (
    SEED,
    SPLITS,
    Split,
    hold_out,
)


def divide(
    photos: Sequence[Photo],
    tree: Tree,
    findings: Findings,
    by: Callable[[Photo], str] | None = None,
) -> tuple[dict[Split, list[Photo]], bool]:
    """The photographs by split, and whether those for validation were held out from training.

    Photographs for a test are neither trained on nor validated. Those of no part are to train on,
    and where others are to train on by their part, left out. Where there are none to validate, a
    tenth is held out, the same ones each time.

    Args:
        photos: the photographs.
        tree: the files of the folder.
        findings: what is noticed.
        by: what a tenth is held out of, for each photograph. Default: all.

    Raises:
        ConfigError: if there are none to train on, or too few to hold one out.
    """
    parts: dict[Split, list[Photo]] = {name: [] for name in SPLITS}
    has_train = any(photo.split == 'train' for photo in photos)
    for photo in _once(photos, findings):
        if photo.split is None and has_train:
            findings.note(
                'images left out, in no folder or list of a part of the data set',
                photo.path.relative_to(tree.folder),
            )
        else:
            parts[photo.split or 'train'].append(photo)
    if not parts['train']:
        have = ' and '.join(name for name in SPLITS if parts[name]) or 'no part'
        raise ConfigError(
            f'--data: {str(tree.folder)!r} has images for {have} and none to train on; put those '
            "into a folder 'train'."
        )
    if parts['val']:
        _note_copies(parts, findings)
        return parts, False
    groups: dict[str, list[Photo]] = {}
    for photo in parts['train']:
        groups.setdefault(by(photo) if by else '', []).append(photo)
    parts['train'] = []
    for group, members in groups.items():
        seed = (SEED, zlib.crc32(os.fsencode(group))) if by else SEED
        held, others = hold_out(members, np.random.default_rng(seed))
        parts['val'] += held
        parts['train'] += others
    if not parts['val']:
        where = ' of any class' if by else ''
        raise ConfigError(
            f'--data: {str(tree.folder)!r} has too few images{where} to hold one out; add some, or '
            "a folder 'val' next to 'train'."
        )
    _note_copies(parts, findings)
    return parts, True


def _note_copies(parts: Mapping[Split, Sequence[Photo]], findings: Findings) -> None:
    """Note files of equal content: of an image to train on, and with other labels."""
    by_size: dict[int, list[tuple[Split, Photo]]] = {}
    for split in SPLITS:
        for photo in parts[split]:
            by_size.setdefault(photo.path.stat().st_size, []).append((split, photo))
    for same_size in by_size.values():
        first: dict[bytes, tuple[Split, Photo]] = {}
        for split, photo in same_size if len(same_size) > 1 else ():
            content = blake2b(photo.path.read_bytes()).digest()
            of, copied = first.setdefault(content, (split, photo))
            if copied is photo:
                continue
            if split != 'train' and of == 'train':
                findings.note(
                    'images to validate or test that are copies of one to train on', photo.path
                )
            if _said_of(photo) != _said_of(copied):
                findings.note(
                    'copies of one image with other labels, as of two classes',
                    f'{copied.path} and {photo.path}',
                )


def _said_of(photo: Photo) -> object:
    """What is said of a photograph, as it is compared."""
    return (
        {*photo.labels},
        sorted((found.name, *map(round, found.box)) for found in photo.instances),
    )


def _once(photos: Sequence[Photo], findings: Findings) -> list[Photo]:
    """Each file once, with all its annotated objects, in the split furthest from training."""
    by_path: dict[Path, Photo] = {}
    unclear = set()
    for photo in photos:
        first = by_path.setdefault(photo.path, photo)
        if first is photo:
            continue
        if _said_of(first) != _said_of(photo) and first.origin != photo.origin:
            findings.refuse(
                'images have two files of labels, which say different things',
                'keep one of them',
                f'{photo.path} in {first.origin} and {photo.origin}',
            )
            unclear.add(photo.path)
        splits = {first.split, photo.split} - {None}
        if len(splits) > 1:
            findings.note('images in several parts of the data, left out of training', photo.path)
        else:
            findings.note('images that are listed twice, taken as one', photo.path)
        first.split = next((split for split in reversed(SPLITS) if split in splits), None)
        first.instances, _ = without_repeats([*first.instances, *photo.instances])
    if unclear:
        findings.check(sum(len(photo.instances) for photo in photos))
    return [photo for path, photo in by_path.items() if path not in unclear]


def check_classes(
    parts: dict[Split, list[Photo]],
    held_out: bool,
    names: Callable[[Photo], Iterable[str]],
    findings: Findings,
) -> set[str]:
    """The classes that have something to train on. Near twins are noted.

    Raises:
        ConfigError: if the validation or test has a class that has nothing to train on.
    """
    known = {name for photo in parts['train'] for name in names(photo)}
    alike = near_twins(known)
    findings.note_all(
        'classes whose names differ in case, blanks or letters that look the same',
        (f'{name!r} and {first!r}' for name, first in alike.items() if name != first),
    )
    foreign_to: tuple[Split, ...] = ('test',) if held_out else ('val', 'test')
    for split in foreign_to:
        for photo in parts[split]:
            foreign = sorted({*names(photo)} - known)
            if foreign:
                near = next((name for name in known if twin_key(name) == twin_key(foreign[0])), '')
                hint = f', only of {near!r}' if near else ''
                purpose = dict(val='to validate', test='to test').get(split)
                raise ConfigError(
                    f'--data: {photo.origin or str(photo.path)!r}, {purpose}, has the class '
                    f'{foreign[0]!r}, of which there is nothing to train on{hint}; remove it, or '
                    'add some there.'
                )
    return known
