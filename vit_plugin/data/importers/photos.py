"""Photographs of a data set: their paths, their sizes as displayed, and their annotations."""

import math
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote

from vit_plugin.errors import ConfigError, first_line
from vit_plugin.files.bands import shape_of
from vit_plugin.files.images import IMAGE_SUFFIXES, is_image, is_litter, seen_size, walk_files

from .findings import Findings
from .records import Photo
from .splits import Split, split_of

RUNS = 'work_dirs'  # the folder of all runs, which is not part of the data
MOST_HEADERS = 100_000  # images whose header is read where nothing but their size is asked


def nfc(name: str) -> str:
    """A name as it is compared: macOS writes letters with accents as two characters."""
    return unicodedata.normalize('NFC', name)


def stated_size(width: Any, height: Any) -> tuple[float, float]:
    """The size that an annotation states, as numbers or text; (0, 0) if a side is no size."""
    try:
        sides = float(width or 0), float(height or 0)
    except (TypeError, ValueError):
        return 0, 0
    return sides if all(sides) and all(map(math.isfinite, sides)) else (0, 0)


def shared_start(first: Sequence[str], second: Sequence[str]) -> int:
    """The number of equal entries at the beginning."""
    return next(
        (i for i, pair in enumerate(zip(first, second, strict=False)) if pair[0] != pair[1]),
        min(len(first), len(second)),
    )


def _unwrapped(folder: Path) -> Path:
    """The folder, or the only one in it, unless that is a split or has no subfolders."""
    entries = [entry for entry in folder.iterdir() if not is_litter(entry) and entry.name != RUNS]
    inner = entries[0] if len(entries) == 1 and entries[0].is_dir() else None
    if (
        inner is None
        or split_of(inner.name)
        or not any(entry.is_dir() for entry in inner.iterdir())
    ):
        return folder
    return _unwrapped(inner)


class Tree:
    """The files of a folder: images, which are found by their names, and others.

    Args:
        folder: the folder of the data. If all of it is one folder, as where an archive was
            unpacked, that is taken. Earlier runs in ``work_dirs`` are not part of it.

    Attributes:
        folder: the folder.
        images, others: paths of the files.

    Raises:
        ConfigError: if there is no such folder.
    """

    def __init__(self, folder: str | Path) -> None:
        if not Path(folder).is_dir():
            raise ConfigError(f'--data: there is no folder {str(folder)!r}.')
        self.folder = _unwrapped(Path(folder))
        self.images: list[Path] = []
        self.others: list[Path] = []
        for path in walk_files(self.folder):
            if RUNS not in path.relative_to(self.folder).parts[:1]:
                (self.images if is_image(path) else self.others).append(path)
        self._by_name, self._by_stem = defaultdict(list), defaultdict(list)
        for path in self.images:
            self._by_name[nfc(path.name).casefold()].append(path)
            self._by_stem[nfc(path.stem).casefold()].append(path)

    def parts(self, path: Path) -> tuple[str, ...]:
        """The folders between the data's and a file."""
        return path.relative_to(self.folder).parts[:-1]

    def split(self, path: Path) -> Split | None:
        """The part of the data set that one of its folders stands for."""
        return next(filter(None, map(split_of, self.parts(path))), None)

    def find(self, name: str, near: Path, split: Split | None = None) -> Path | None:
        """The image that an annotation calls so.

        The folders in the name count, then the part of the data set, then the distance from the
        annotation, then large and small letters. Without a file of this suffix, or if the name has
        none, that of another suffix is taken.

        Args:
            name: as written, maybe with folders of another machine, with backslashes, or as a URL
                of Label Studio.
            near: the annotation.
            split: the part of the data set that the annotation is for.
        """
        said = PurePosixPath(nfc(name.replace('\\', '/').replace('?d=', '/')))
        if said.name.casefold() not in self._by_name and '%' in said.name:
            said = PurePosixPath(nfc(unquote(str(said))))
        key, stem = said.name.casefold(), said.stem.casefold()
        found = self._by_name.get(key) or self._by_stem.get(key) or []
        if not found and said.suffix.lower() in IMAGE_SUFFIXES:
            found = self._by_stem.get(stem) or []
        if len(found) < 2:
            return found[0] if found else None
        split = split or self.split(near)

        def fit(path: Path) -> tuple[int, bool, int, bool]:
            folders = [nfc(part) for part in self.parts(path)]
            named = shared_start(folders[::-1], said.parts[-2::-1])
            shared = shared_start(self.parts(path), self.parts(near))
            same = said.name in (nfc(path.name), nfc(path.stem))
            return named, split is not None and self.split(path) == split, shared, same

        best = max(map(fit, found))
        fitting = [path for path in found if fit(path) == best]
        return fitting[0] if len(fitting) == 1 else None

    def with_stem(self, stem: str, near: Path) -> Path | None:
        """The image of an annotation file of this name, with any suffix."""
        return self.find(stem, near) if nfc(stem).casefold() in self._by_stem else None


def read_sizes(photos: Sequence[Photo], findings: Findings) -> list[Photo]:
    """The photographs that can be read, with what their headers say. The others are noted."""

    def read(photo: Photo) -> tuple[tuple[int, int], int] | str:
        try:
            return seen_size(photo.path), (shape_of(photo.path) or (0, 0, 0))[2]
        except Exception as error:  # noqa: BLE001  whatever a decoder trips over
            return first_line(error)

    readable = []
    with ThreadPoolExecutor(8) as pool:
        for photo, found in zip(photos, pool.map(read, photos), strict=True):
            if isinstance(found, str):
                findings.note(
                    'images left out, since they cannot be read', f'{photo.path} ({found})'
                )
            else:
                photo.size, photo.bands = found
                readable.append(photo)
    return readable


def note_unused(tree: Tree, used: Iterable[Path], findings: Findings) -> None:
    """Note the files of a folder that were not read, by suffix, and the unused images."""
    used = {*used}
    for path in tree.others:
        if path not in used:
            suffix = path.suffix.lower() or 'without a suffix'
            findings.note(f'files left out, {suffix}', path.relative_to(tree.folder))
    for path in tree.images:
        if path not in used:
            findings.note(
                'images left out, of which nothing is said or which are in no list',
                path.relative_to(tree.folder),
            )
