"""Lists of the images of a split: ``train.txt``, ``meta/test.json``, ``train_test_split.txt``."""

import os
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path

from anyfolder.errors import UnclearError
from anyfolder.pixels.image_files import IMAGE_SUFFIXES
from anyfolder.text import LONGEST_IN_LIST, read_lines

from .findings import Findings
from .identity import OTHER_ZEROS, Index
from .image_tree import Tree
from .named_folders import Folders, NamedFolders
from .split_lines import SplitLine, is_list_name, split_lines
from .splits import SPLITS, Split, is_joint, split_in

LABEL_SUFFIXES = (
    '.xml',
    '.json',
    '.txt',
    '.npy',
    '.mat',
)  # lists can name label files instead of images
PURPOSES: dict[Split, str] = dict(train='train on', val='validate', test='test')
VOC_LISTS = 'ImageSets'  # Pascal VOC's folder of lists, with a subfolder for each task


@dataclass
class Lists:
    """The content of the lists.

    Attributes:
        splits: the split of each image; if there are several, the one furthest from training.
        labels: the text after the name of an image.
        groups: if lists name folders, the folder of each image, also of images in other folders at
            that depth.
        sources: the list with the split of each image.
        files: the lists.
    """

    splits: dict[Path, Split] = field(default_factory=dict)
    labels: dict[Path, str] = field(default_factory=dict)
    groups: dict[Path, str] = field(default_factory=dict)
    sources: dict[Path, Path] = field(default_factory=dict)
    files: dict[Path, None] = field(default_factory=dict)


def images_of(tree: Tree, place: Path, findings: Findings) -> Iterator[Path]:
    """The images in a folder, or in a list with a path on each line."""
    if place.is_dir():
        within = '' if place == Path() else os.path.join(place, '')
        yield from (image for image in tree.images if str(image).startswith(within))
        return
    for line in read_lines(place, LONGEST_IN_LIST):
        if image := tree.resolve(line, place, None, findings, 'lines'):
            yield image


def read_lists(
    tree: Tree,
    findings: Findings,
    index: Index | None = None,
    used: Collection[Path | None] = (),
    task_folder: str = '',
    classes: Collection[str] = (),
) -> Lists:
    """Read the lists that are named after splits, or are JSON with splits as keys.

    A line has a path, with or without suffix, maybe followed by a label, or the name of a folder of
    images such as the frames of a video. A table can have a split column. Images in a list for both
    training and validation are for training unless another list has them for validation.

    Args:
        tree: the files of the folder.
        findings: collects lines whose image is missing, and images in lists of two splits.
        index: the index of the images that count. Default: of all images.
        used: annotation files, which are not lists.
        task_folder: the folder of the task in ``ImageSets``, such as ``Segmentation``; other
            folders there do not count.
        classes: the names of class folders, which are not entries of lists.

    Raises:
        InputError: if there are lists of several divisions with different splits of an image.
    """
    reading = _Reading(index or tree.index, NamedFolders(tree, classes), findings, classes)
    for file in _candidates(tree, used, task_folder):
        reading.add(file, [*split_lines(tree, file, reading.folders, findings)])
    lists = reading.lists
    if reading.named:
        lists.groups |= reading.folders.beside(reading.named)
    return lists


def _candidates(tree: Tree, used: Collection[Path | None], task_folder: str) -> list[Path]:
    files = [path for path in tree.others if path not in used]
    of_task = {path for path in files if path.parts[-3:-1] == (VOC_LISTS, task_folder)}
    others = {path for path in files if VOC_LISTS in tree.parts(path)} if of_task else set()
    return [path for path in files if path not in others - of_task]


class _Reading:
    """The lists while they are read."""

    def __init__(
        self, index: Index, folders: NamedFolders, findings: Findings, classes: Collection[str]
    ) -> None:
        self.index, self.folders, self.findings = index, folders, findings
        self.classes = {*classes}
        self.lists = Lists()
        self.named: list[Folders] = []  # folders named in lists

    def add(self, file: Path, lines: Sequence[SplitLine]) -> None:
        """Read the lines of a file."""
        found = [self._images(file, line) for line in lines]
        if lines and not any(found):
            found = self._by_start(lines)
            if not any(found):
                found = self._by_number(file, lines)
            if not any(found) and is_list_name(file.stem):
                what = 'lists left out, since no line is an image or a folder of images'
                self.findings.warn(what, f'{next(iter(lines[0].names))!r} in {file}')
        for line, images in zip(lines, found, strict=True):
            for image, label in images:
                self._say(image, line.split, label, file)
            named = next((one for one in line.names if one.lower().endswith(IMAGE_SUFFIXES)), None)
            if named and not images:
                self.findings.lose('lines', file, named)
        if any(found):
            self.lists.files[file] = None

    def _images(self, file: Path, line: SplitLine) -> list[tuple[Path, str]]:
        """The images that a line names, each with its label."""
        for name, label in line.names.items():
            if found := self._match(name, file):
                image = self.index.only(found, file, self.findings, next(iter(line.names)))
                return [(image, label)] if image else []
        for name, label in islice(line.names.items(), 2):  # followed by at most one word
            if folders := self.folders.match(name):
                self.named += folders
                return [(image, label) for image in self.folders.images(folders)]
        return []

    def _match(self, name: str, file: Path) -> Sequence[Path]:
        if found := self.index.match(name, file):
            return found
        stem, suffix = os.path.splitext(name)
        return self.index.match(stem, file) if suffix.lower() in LABEL_SUFFIXES else ()

    def _by_start(self, lines: Sequence[SplitLine]) -> list[list[tuple[Path, str]]]:
        """The images whose names begin with these lines, if all lines match: ``video3_0001.jpg``.

        Class names do not count: a list of classes is not a split.
        """
        starts = [next(iter(line.names)) for line in lines]
        found = [self._starts.get(start, []) for start in starts]
        if not all(found) or not self.classes.isdisjoint(starts):
            return [[] for _ in lines]
        for line, images in zip(lines, found, strict=True):
            self.lists.groups |= dict.fromkeys(images, next(iter(line.names)))
        return [[(image, '') for image in images] for images in found]

    def _by_number(self, file: Path, lines: Sequence[SplitLine]) -> list[list[tuple[Path, str]]]:
        """The images and folders whose names are these numbers with other zeros.

        If a number is on two lines, the numbers are classes rather than names.
        """
        names = [next(iter(line.names)) for line in lines]
        found: list[list[tuple[Path, str]]] = [[] for _ in lines]
        for own, name in zip(found, names, strict=True) if len({*names}) == len(names) else ():
            images = self.index.match_number(name, file)
            if not images and (folders := self.folders.match_number(name)):
                self.named += folders
                images = self.folders.images(folders)
            own += [(image, '') for image in images]
            self.findings.warn_all(OTHER_ZEROS, (f'{name} in {file}' for _ in images[:1]))
        return found

    @cached_property
    def _starts(self) -> dict[str, list[Path]]:
        """The images by the beginning of their name."""
        starts = defaultdict[str, list[Path]](list)
        for image in self.index.images:
            for end in re.finditer('[ _.-]', image.stem):
                starts[image.stem[: end.start()]].append(image)
        return starts

    def _say(self, image: Path, split: Split, label: str, file: Path) -> None:
        """Note the split of an image in a list. Of several, the furthest from training counts."""
        known, other = self.lists.splits.get(image), self.lists.sources.get(image)
        if known and other and known != split and not (is_joint(file.stem) or is_joint(other.stem)):
            if _division(file) != _division(other):
                raise UnclearError(
                    f'{str(other)!r} has {image.name!r} to {PURPOSES[known]}, but '
                    f'{str(file)!r} has it to {PURPOSES[split]}; keep the lists of one division of '
                    'the images, and move the others away.',
                    splits=_of_one_division(other),
                )
            what = 'images in lists of two splits, assigned to the one furthest from training'
            self.findings.warn(what, f'{image} in {other.name} and {file.name}')
        if known is None or SPLITS.index(split) > SPLITS.index(known):
            self.lists.splits[image], self.lists.sources[image] = split, file
        if label:
            self.lists.labels[image] = label


def _division(file: Path) -> tuple[Path, list[str]]:
    """The common key of the lists of one division: their folder, and numbers in their names."""
    return file.parent, re.findall(r'\d+', file.stem)


def _of_one_division(file: Path) -> dict[Split, Path]:
    """The list of each split in the division of this list."""
    beside = (path for path in sorted(file.parent.iterdir()) if path.suffix == file.suffix)
    lists = [path for path in beside if _division(path) == _division(file)]
    return {split: path for path in reversed(lists) if (split := split_in(path.stem))}
