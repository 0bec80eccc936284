"""Images named by their folder: frames of a video, or pictures of a patient."""

import os
from collections import defaultdict
from collections.abc import Container, Sequence
from functools import cached_property
from pathlib import Path

from .addresses import ANY_KIND
from .class_names import nfc
from .identity import NUMBER
from .image_tree import Tree
from .splits import split_of

Folders = tuple[str, ...]  # path parts below the data folder
LONGEST_SUFFIX = 5  # characters, as in .mpeg: a folder of frames may be named after its video


class NamedFolders:
    """The folders of images that lists and tables can name instead of each image.

    Args:
        tree: the files of the folder.
        excluded: names of class folders, which never match.
    """

    def __init__(self, tree: Tree, excluded: Container[str] = ()) -> None:
        self._tree, self._excluded = tree, excluded

    @cached_property
    def _by_tail(self) -> dict[str, list[Folders]]:
        """Folders by each end of their path: ``c``, ``b/c`` and ``a/b/c``."""
        all_folders = {
            folders[: depth + 1]
            for folders in self._tree.images_in
            for depth in range(len(folders))
        }
        by_tail = defaultdict[str, list[Folders]](list)
        for folders in sorted(all_folders):
            for start in range(len(folders)):
                by_tail[nfc('/'.join(folders[start:]))].append(folders)
        return by_tail

    @cached_property
    def _below(self) -> dict[Folders, list[Path]]:
        """The images anywhere below each folder."""
        below = defaultdict[Folders, list[Path]](list)
        for folders, images in self._tree.images_in.items():
            for depth in range(len(folders)):
                below[folders[: depth + 1]] += images
        return below

    def match(self, name: str) -> Sequence[Folders]:
        """The folders with a name: ``seq/1``, or ``seq/1.avi`` for a video in frames.

        Names of splits or kinds of files, such as ``images``, do not identify a folder.
        """
        parts = [part for part in nfc(name).replace('\\', '/').split('/') if part not in ('', '.')]
        stem, suffix = os.path.splitext(parts[-1]) if parts else ('', '')
        for last in dict.fromkeys((stem + suffix, stem if len(suffix) <= LONGEST_SUFFIX else '')):
            if not last or split_of(last) or last.casefold() in ANY_KIND or last in self._excluded:
                continue
            if folders := self._by_tail.get('/'.join([*parts[:-1], last])):
                return folders
        return ()

    def match_number(self, name: str) -> Sequence[Folders]:
        """The folders whose name is this number with other zeros: ``0007`` for 7 and 7.0.

        Empty if folders of the number have several names, see :meth:`.Index.match_number`.
        """
        number = NUMBER.fullmatch(name)
        names = self._numbered.get(int(number[1]), ()) if number else ()
        return self.match(min(names)) if len(names) == 1 else ()

    @cached_property
    def _numbered(self) -> dict[int, set[str]]:
        """The folder names that are numbers, by number."""
        names = defaultdict[int, set[str]](set)
        for name in self._by_tail:
            if number := NUMBER.fullmatch(name):
                names[int(number[1])].add(name)
        return names

    def images(self, folders: Sequence[Folders]) -> list[Path]:
        """The images anywhere in these folders."""
        return [image for folder in folders for image in self._below[folder]]

    def images_at_same_depth(self, folders: Sequence[Folders]) -> dict[Path, str]:
        """The images in folders at the depth of these, with the path of the folder."""
        depths = {*map(len, folders)}
        return {
            image: '/'.join(parts)
            for parts, images in self._below.items()
            if len(parts) in depths
            for image in images
        }
