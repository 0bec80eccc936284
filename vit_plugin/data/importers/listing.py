"""The canonical listing of a data set in any format, read by training, validation and test."""

import json
import os
import unicodedata
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from vit_plugin.errors import ConfigError

from .findings import Findings
from .instances import without_repeats
from .mask_values import MaskValues
from .photos import Photo, Tree
from .splits import SEED, SPLITS, Split, hold_out


@dataclass
class Listing:
    """Images and annotations of a data set, checked against its files.

    Attributes:
        form: what it is, in words: ``'COCO'``, ``'folders of classes'``.
        folder: of the data.
        classes: names of the classes in the order of their numbers, those that have something to
            train on.
        parts: the photographs of each part. There may be none for a test.
        held_out: whether ``val`` was drawn from the photographs to train on.
        findings: what was noticed.
        masks: the class of each value of the masks.
        multi_label: whether a photograph may have several classes, or none.
        unseen: classes without an image to validate.
    """

    form: str
    folder: Path
    classes: tuple[str, ...]
    parts: dict[Split, list[Photo]]
    held_out: bool
    findings: Findings
    masks: MaskValues | None = None
    multi_label: bool = False
    unseen: tuple[str, ...] = ()

    @cached_property
    def root(self) -> Path:
        """The innermost folder of all photographs, absolute."""
        folders = {photo.path.absolute().parent for part in self.parts.values() for photo in part}
        return Path(os.path.commonpath(folders))

    @property
    def train(self) -> list[Photo]:
        """The photographs to train on."""
        return self.parts['train']

    @property
    def val(self) -> list[Photo]:
        """The photographs to validate on."""
        return self.parts['val']

    @property
    def relative_boxes(self) -> np.ndarray:
        """Width and height (N, 2) of each training box, relative to its image's longer side."""
        sides = [
            (found.box[2] / max(photo.size), found.box[3] / max(photo.size))
            for photo in self.train
            for found in photo.instances
            if not found.crowd
        ]
        return np.array(sides, dtype=float).reshape(-1, 2)

    def name_of(self, photo: Photo) -> str:
        """The path of a photograph within :attr:`root`, with ``/``."""
        return photo.path.absolute().relative_to(self.root).as_posix()

    def counts(self, part: Iterable[Photo]) -> Counter[str]:
        """The number of objects of each class, or of photographs."""
        counts = Counter[str]()
        for photo in part:
            objects = (found.name for found in photo.instances if not found.crowd)
            counts.update(photo.labels or objects)
        return counts

    def as_coco(self, part: Sequence[Photo]) -> str:
        """Photographs with boxes, as the text of a COCO JSON file that any COCO reader accepts."""
        numbers = {name: number for number, name in enumerate(self.classes, 1)}
        images: list[dict[str, Any]] = []
        annotations: list[dict[str, Any]] = []
        for number, photo in enumerate(part, 1):
            width, height = photo.size
            images.append(
                dict(id=number, file_name=self.name_of(photo), width=width, height=height)
            )
            for found in photo.instances:
                annotations.append(
                    dict(
                        id=len(annotations) + 1,
                        image_id=number,
                        category_id=numbers[found.name],
                        bbox=[round(value, 3) for value in found.box],
                        area=round(float(found.area), 3),
                        iscrowd=int(found.crowd),
                        segmentation=found.segmentation or [],
                    )
                )
        categories = [
            dict(id=number, name=name, supercategory='') for name, number in numbers.items()
        ]
        return json.dumps(
            dict(
                info=dict(description=f'{self.form} of {self.folder.name}'),
                licenses=[],
                images=images,
                annotations=annotations,
                categories=categories,
            )
        )

    def as_lines(self, part: Sequence[Photo], labelled: bool) -> str:
        """Photographs as lines of text, each with the number of its class if ``labelled``.

        Raises:
            ConfigError: for a path that cannot be a line.
        """
        numbers = {name: number for number, name in enumerate(self.classes)}
        lines = []
        for photo in part:
            name = self.name_of(photo)
            if name.splitlines() != [name.strip()]:
                raise ConfigError(
                    f'--data: the path {name!r} in {str(self.root)!r} has a line break or begins '
                    'with a space, and a list of images has a path on each line; rename it.'
                )
            lines.append(f'{name} {numbers[photo.labels[0]]}' if labelled else name)
        return ''.join(f'{line}\n' for line in lines)

    def as_json(self, part: Sequence[Photo]) -> str:
        """Photographs as MMEngine's JSON: for several classes, and for paths that are not UTF-8."""
        numbers = {name: number for number, name in enumerate(self.classes)}
        rows: list[dict[str, Any]] = []
        for photo in part:
            labels = [numbers[name] for name in photo.labels if name in numbers]
            rows.append(
                dict(
                    img_path=self.name_of(photo), gt_label=labels if self.multi_label else labels[0]
                )
            )
        return json.dumps(dict(metainfo=dict(classes=self.classes), data_list=rows))


def is_encodable(text: str) -> bool:
    """True if a name is UTF-8, so that a text file can hold it."""
    return not any('\ud800' <= letter <= '\udfff' for letter in text)


def readable(name: str) -> str:
    """A name from a disk as text: composed letters, and Latin-1 where it is not UTF-8."""
    text = name if is_encodable(name) else os.fsencode(name).decode('cp1252', errors='replace')
    return unicodedata.normalize('NFC', text)


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
