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
from .identity import OTHER_ZEROS, Index, single_match
from .image_tree import Tree
from .named_folders import Folders, NamedFolders
from .split_lines import SplitLine, is_list_name, split_lines
from .splits import SPLITS, Split, is_joint, split_in

LABEL_SUFFIXES = ('.xml', '.json', '.txt', '.npy', '.mat')  # lists may name label files
PURPOSES: dict[Split, str] = dict(train='train on', val='validate', test='test')
VOC_LISTS = 'ImageSets'  # Pascal VOC's folder of lists, with a subfolder for each task


@dataclass
class Lists:
    """The content of the lists.

    Attributes:
        splits: the split of each image; if there are several, the one furthest from training.
        labels: the text after the name of each image, if there is any.
        groups: if lists name folders or beginnings of names instead of images, the folder or the
            beginning of each image, also for images in other folders at the depth of these.
        sources: the list with the split of each image.
        files: the lists.
    """

    splits: dict[Path, Split] = field(default_factory=dict)
    labels: dict[Path, str] = field(default_factory=dict)
    groups: dict[Path, str] = field(default_factory=dict)
    sources: dict[Path, Path] = field(default_factory=dict)
    files: dict[Path, None] = field(default_factory=dict)


def images_in(tree: Tree, source: Path, findings: Findings) -> Iterator[Path]:
    """The images in a folder, or in a list with a path on each line."""
    if source.is_dir():
        within = '' if source == Path() else os.path.join(source, '')
        yield from (image for image in tree.images if str(image).startswith(within))
        return
    for line in read_lines(source, LONGEST_IN_LIST):
        if image := tree.resolve(line, source, split=None, findings=findings, what='lines'):
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
        index: the index of the images that lists may name. Default: of all images.
        used: annotation files, which are not lists.
        task_folder: the folder of the task in ``ImageSets``, such as ``Segmentation``; other
            folders there are left out.
        classes: the names of class folders, which are not entries of lists.

    Raises:
        InputError: if there are lists of several divisions with different splits of an image.
    """
    reader = _ListReader(index or tree.index, NamedFolders(tree, classes), findings, classes)
    for file in _candidates(tree, used, task_folder):
        reader.add(file, [*split_lines(tree, file, reader.folders, findings)])
    lists = reader.lists
    if reader.named_folders:
        lists.groups |= reader.folders.images_at_same_depth(reader.named_folders)
    return lists


def _candidates(tree: Tree, used: Collection[Path | None], task_folder: str) -> list[Path]:
    """The files that may be lists, without those of other tasks if the task has its own folder."""
    files = [path for path in tree.others if path not in used]
    of_task = {path for path in files if path.parts[-3:-1] == (VOC_LISTS, task_folder)}
    others = {path for path in files if VOC_LISTS in tree.parts(path)} if of_task else set()
    return [path for path in files if path not in others - of_task]


class _ListReader:
    """Reads one list after another.

    Args:
        index: the images that lists may name.
        folders: the folders that lists may name instead.
        findings: collects lines without an image, and images in lists of two splits.
        classes: the names of class folders, which are not entries of lists.

    Attributes:
        lists: the content of the lists that were read.
        named_folders: the folders that these name instead of images.
    """

    def __init__(
        self, index: Index, folders: NamedFolders, findings: Findings, classes: Collection[str]
    ) -> None:
        self.index, self.folders, self.findings = index, folders, findings
        self.classes = {*classes}
        self.lists = Lists()
        self.named_folders: list[Folders] = []

    def add(self, file: Path, lines: Sequence[SplitLine]) -> None:
        """Read the lines of a file."""
        images_of_lines = [self._match_line(file, line) for line in lines]
        if lines and not any(images_of_lines):
            images_of_lines = self._match_starts(lines)
            if not any(images_of_lines):
                images_of_lines = self._match_numbers(file, lines)
            if not any(images_of_lines) and is_list_name(file.stem):
                what = 'lists left out, since no line is an image or a folder of images'
                self.findings.warn(what, f'{next(iter(lines[0].names))!r} in {file}')
        for line, images in zip(lines, images_of_lines, strict=True):
            for image, label in images:
                self._assign(image, line.split, label, file)
            if images:
                continue
            missing = (name for name in line.names if name.lower().endswith(IMAGE_SUFFIXES))
            if name := next(missing, None):
                self.findings.warn_missing_image('lines', file, name)
        if any(images_of_lines):
            self.lists.files[file] = None

    def _match_line(self, file: Path, line: SplitLine) -> list[tuple[Path, str]]:
        """The images that a line names, each with its label."""
        for name, label in line.names.items():
            if matches := self._match(name, file):
                image = single_match(matches, file, self.findings, next(iter(line.names)))
                return [(image, label)] if image else []
        for name, label in islice(line.names.items(), 2):  # it may be a folder and one word
            if folders := self.folders.match(name):
                self.named_folders += folders
                return [(image, label) for image in self.folders.images(folders)]
        return []

    def _match(self, name: str, file: Path) -> Sequence[Path]:
        """The images that a name can refer to, also as the name of a label file."""
        if matches := self.index.match(name, file):
            return matches
        stem, suffix = os.path.splitext(name)
        return self.index.match(stem, file) if suffix.lower() in LABEL_SUFFIXES else ()

    def _match_starts(self, lines: Sequence[SplitLine]) -> list[list[tuple[Path, str]]]:
        """The images whose names begin with these lines, if all lines match: ``video3_0001.jpg``.

        Empty if a line is the name of a class: a list of classes is not a split.
        """
        starts = [next(iter(line.names)) for line in lines]
        images_of_lines = [self._starts.get(start, []) for start in starts]
        if not all(images_of_lines) or not self.classes.isdisjoint(starts):
            return [[] for _ in lines]
        for start, images in zip(starts, images_of_lines, strict=True):
            self.lists.groups |= dict.fromkeys(images, start)
        return [[(image, '') for image in images] for images in images_of_lines]

    def _match_numbers(
        self, file: Path, lines: Sequence[SplitLine]
    ) -> list[list[tuple[Path, str]]]:
        """The images and folders whose names are these numbers with other zeros.

        If a number is on two lines, the numbers are classes rather than names.
        """
        names = [next(iter(line.names)) for line in lines]
        if len({*names}) < len(names):
            return [[] for _ in lines]
        images_of_lines: list[list[tuple[Path, str]]] = []
        for name in names:
            images = self.index.match_number(name, file)
            if not images and (folders := self.folders.match_number(name)):
                self.named_folders += folders
                images = self.folders.images(folders)
            if images:
                self.findings.warn(OTHER_ZEROS, f'{name} in {file}')
            images_of_lines.append([(image, '') for image in images])
        return images_of_lines

    @cached_property
    def _starts(self) -> dict[str, list[Path]]:
        """The images by the beginning of their name."""
        starts = defaultdict[str, list[Path]](list)
        for image in self.index.images:
            for end in re.finditer('[ _.-]', image.stem):
                starts[image.stem[: end.start()]].append(image)
        return starts

    def _assign(self, image: Path, split: Split, label: str, file: Path) -> None:
        """Give an image its split and label in a list.

        Of several splits, the one furthest from training is used.

        Raises:
            UnclearError: if a list of another division has another split of the image.
        """
        known_split, known_file = self.lists.splits.get(image), self.lists.sources.get(image)
        if (
            known_split
            and known_file
            and known_split != split
            and not (is_joint(file.stem) or is_joint(known_file.stem))
        ):
            if _division(file) != _division(known_file):
                raise UnclearError(
                    f'{str(known_file)!r} has {image.name!r} to {PURPOSES[known_split]}, but '
                    f'{str(file)!r} has it to {PURPOSES[split]}; keep the lists of one division of '
                    'the images, and move the others away.',
                    splits=_lists_of_division(known_file),
                )
            what = 'images in lists of two splits, assigned to the one furthest from training'
            self.findings.warn(what, f'{image} in {known_file.name} and {file.name}')
        if known_split is None or SPLITS.index(split) > SPLITS.index(known_split):
            self.lists.splits[image], self.lists.sources[image] = split, file
        if label:
            self.lists.labels[image] = label


def _division(file: Path) -> tuple[Path, list[str]]:
    """What the lists of one division have in common: their folder, and numbers in their names."""
    return file.parent, re.findall(r'\d+', file.stem)


def _lists_of_division(file: Path) -> dict[Split, Path]:
    """The list of each split in the division of this list."""
    same_suffix = (path for path in sorted(file.parent.iterdir()) if path.suffix == file.suffix)
    lists = [path for path in same_suffix if _division(path) == _division(file)]
    # Reversed, so that the first list of a split is used.
    return {split: path for path in reversed(lists) if (split := split_in(path.stem))}
