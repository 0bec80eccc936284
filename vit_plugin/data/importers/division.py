"""Divide photographs into those to train on, to validate and to test, each file once."""

import os
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from hashlib import blake2b
from pathlib import Path

import numpy as np

from vit_plugin.errors import ConfigError

from .findings import Findings
from .instances import without_repeats
from .photos import Tree
from .records import Photo
from .splits import SEED, SPLITS, Split, hold_out


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
    """Note files to validate or test whose content is that of one to train on."""
    by_size: dict[int, list[Path]] = {}
    for photo in parts['train']:
        by_size.setdefault(photo.path.stat().st_size, []).append(photo.path)

    @cache
    def contents(size: int) -> set[bytes]:
        return {blake2b(path.read_bytes()).digest() for path in by_size.get(size, ())}

    for photo in (*parts['val'], *parts['test']):
        known = contents(photo.path.stat().st_size)
        if known and blake2b(photo.path.read_bytes()).digest() in known:
            findings.note(
                'images to validate or test that are copies of one to train on', photo.path
            )


def _once(photos: Sequence[Photo], findings: Findings) -> list[Photo]:
    """Each file once, with all its annotated objects, in the split furthest from training."""
    by_path: dict[Path, Photo] = {}
    for photo in photos:
        first = by_path.setdefault(photo.path, photo)
        if first is photo:
            continue
        splits = {first.split, photo.split} - {None}
        if len(splits) > 1:
            findings.note('images in several parts of the data, left out of training', photo.path)
        else:
            findings.note('images that are listed twice, taken as one', photo.path)
        first.split = next((split for split in reversed(SPLITS) if split in splits), None)
        first.instances, _ = without_repeats([*first.instances, *photo.instances])
    return list(by_path.values())


def check_classes(
    parts: dict[Split, list[Photo]],
    held_out: bool,
    names: Callable[[Photo], Iterable[str]],
    findings: Findings,
) -> set[str]:
    """The classes that have something to train on. Those that differ by case alone are noted.

    Raises:
        ConfigError: if the validation or test has a class that has nothing to train on.
    """
    known = {name for photo in parts['train'] for name in names(photo)}
    alike = {name.casefold(): name for name in sorted(known)}
    findings.note_all(
        'classes whose names differ by upper and lower case alone',
        (f'{name!r} and {alike[name.casefold()]!r}' for name in sorted(known - {*alike.values()})),
    )
    foreign_to: tuple[Split, ...] = ('test',) if held_out else ('val', 'test')
    for split in foreign_to:
        for photo in parts[split]:
            foreign = sorted({*names(photo)} - known)
            if foreign:
                near = alike.get(foreign[0].casefold())
                hint = f', only of {near!r}' if near else ''
                purpose = dict(val='to validate', test='to test').get(split)
                raise ConfigError(
                    f'--data: {photo.origin or str(photo.path)!r}, {purpose}, has the class '
                    f'{foreign[0]!r}, of which there is nothing to train on{hint}; remove it, or '
                    'add some there.'
                )
    return known
