"""The files of a folder: images, which are found by their names, and others."""

import os
from collections import defaultdict
from collections.abc import Callable, Sequence
from copy import copy
from functools import cache
from pathlib import Path
from typing import Any

from anyfolder.errors import InputError
from anyfolder.limits import check_limit
from anyfolder.pixels.image_files import IMAGE_SUFFIXES, is_image, is_os_metadata, walk_files

from .file_contents import FileContents
from .findings import Findings
from .identity import OTHER_ZEROS, Index, single_match
from .path_text import folder_of, parts_below
from .probe_cache import CACHE_NAME, ProbeCache
from .records import ImageRecord
from .splits import Split, split_in, split_of

# Names of folders that trainings write, and files that only such folders have.
RUN_FOLDERS = ('work_dirs', 'runs', 'wandb', 'mlruns', 'lightning_logs', 'tb_logs')
RUN_FILES = {
    CACHE_NAME,
    'data_report.json',
    'last_checkpoint',
    'args.yaml',
    'opt.yaml',
    'hparams.yaml',
}


def is_run(folder: Path) -> bool:
    """True for a folder that a training wrote. A folder ``runs`` with images may be a class."""
    if not folder.is_dir():
        return False
    names = set(os.listdir(folder))
    images = any(name.lower().endswith(IMAGE_SUFFIXES) for name in names)
    return not RUN_FILES.isdisjoint(names) or (folder.name in RUN_FOLDERS and not images)


def _unwrap(folder: Path, level: int = 1) -> Path:
    """The folder, or the only one in it, unless that is a split or has no subfolders."""
    check_limit(folder, 'levels of folders', level)
    entries = [entry for entry in folder.iterdir() if not (is_os_metadata(entry) or is_run(entry))]
    inner = entries[0] if len(entries) == 1 and entries[0].is_dir() else None
    if (
        inner is None
        or split_of(inner.name)
        or not any(entry.is_dir() for entry in inner.iterdir())
    ):
        return folder
    return _unwrap(inner, level + 1)


class Tree:
    """The files of a folder: images, which are found by name, and other files.

    Args:
        folder: the folder of the data. If it only contains one folder, as after unpacking an
            archive, that folder is used.
        probes: the cache of probed images. Default: none.

    Attributes:
        folder: the folder.
        images, others: the paths of the images and of the other files.
        images_in: the images in each folder, by the parts of its path below ``folder``.
        probes: the cache of probed images.
        index: finds the image that a label belongs to.
        runs: folders written by trainings, which are not part of the data.
        contents: the contents of the files.

    Raises:
        InputError: if there is no such folder, or if the folders of two splits are the same by a
            link.
    """

    def __init__(self, folder: str | Path, probes: ProbeCache | None = None) -> None:
        if not Path(folder).is_dir():
            raise InputError(f'there is no folder {str(folder)!r}.')
        self.folder, self.probes = _unwrap(Path(folder)), probes or ProbeCache()
        self.images: list[Path] = []
        self.others: list[Path] = []
        self.contents = FileContents()
        self.runs: list[Path] = []
        self._parts = parts_below(self.folder)
        self._split: Callable[[str], Split | None] = cache(self._split_of)
        for path in walk_files(self.folder, self._is_run, self._check_link):
            # `is_image` is false for a broken link, which must be reported as unreadable.
            if str(path).lower().endswith(IMAGE_SUFFIXES) or is_image(path):
                self.images.append(path)
            else:
                self.others.append(path)
        # NAME.npy next to NAME.jpg is a cache of its pixels.
        if arrays := {path for path in self.images if str(path).lower().endswith('.npy')}:
            photographs = {path.with_suffix('') for path in self.images if path not in arrays}
            caches = {path for path in arrays if path.with_suffix('') in photographs}
            self.images = [path for path in self.images if path not in caches]
            self.others = sorted([*self.others, *caches])
        self._index_images()

    def _index_images(self) -> None:
        """Set the attributes that depend on ``images``."""
        self.images_in: dict[tuple[str, ...], list[Path]] = defaultdict(list)
        for path in self.images:
            self.images_in[self.parts(path)].append(path)
        self.index = Index(self.folder, self.images)

    def limited_to(self, images: Sequence[Path], others: Sequence[Path]) -> 'Tree':
        """The same folder, limited to these files."""
        tree = copy(self)
        tree.images, tree.others = list(images), list(others)
        tree._index_images()
        return tree

    def _is_run(self, folder: Path) -> bool:
        """Whether a training wrote a folder; it is then added to ``runs``."""
        if not is_run(folder):
            return False
        self.runs.append(folder)
        return True

    def _check_link(self, link: Path, first: Path) -> None:
        """Raise an ``InputError`` if a link of one split leads to a folder of another."""
        link_split, first_split = (
            split_of(path.name) or self.split(path) if self.folder in path.parents else None
            for path in (link, first)
        )
        if link_split and link_split != first_split:
            raise InputError(
                f'{str(link)!r} and {str(first)!r} are the same folder by a link, so no '
                'image belongs to one split; list the images of each split in train.txt and '
                'val.txt, or remove the link.'
            )

    def resolve(
        self, name: str, file: Path, split: Split | None, findings: Findings, what: str = ''
    ) -> Path | None:
        """The image that a file names. If several match, the name is rejected.

        If none matches, the name is noted as one of ``what``, such as ``'lines'``; without ``what``
        it is rejected.
        """
        matches = self.index.match(name, file, split)
        if not matches and (matches := self.index.match_number(name, file, split)):
            findings.warn(OTHER_ZEROS, f'{name} in {file} for {matches[0].name}')
        if len(matches) == 1:
            return matches[0]
        if what and not matches:
            findings.warn_missing_image(what, file, name)
        elif not matches:
            findings.reject(
                f'images of {str(file)!r} are missing, or are in another split',
                f'put them into {str(self.folder)!r}',
                repr(name),
            )
        return single_match(matches, file, findings, name)

    def record(
        self, path: Path, annotation: Path, split: Split | None = None, **fields: Any
    ) -> ImageRecord:
        """The record of an image, in the given split, or in that of its annotation or its path."""
        split = split or self.split(annotation) or self.split(path)
        return ImageRecord(path, split, origin=str(annotation), **fields)

    def parts(self, path: Path) -> tuple[str, ...]:
        """The folders between the data folder and a file."""
        return self._parts(folder_of(path))

    def split(self, path: Path) -> Split | None:
        """The split that the folders of a file state, the outermost first, or None."""
        return self._split(folder_of(path))

    def stated_split(self, file: Path) -> Split | None:
        """The split that a list or annotation file states for its images by its name or folders."""
        return split_in(file.stem) or self.split(file)

    def _split_of(self, folder: str) -> Split | None:
        return next((split for part in self._parts(folder) if (split := split_of(part))), None)
