"""Find the layouts of a folder: its own, or one of the public data sets in ``known``.

A known layout is recognized by the key ``when``: files that the unpacked data set has.
"""

import os
from collections.abc import Iterator, Sequence
from fnmatch import filter as matching_names
from functools import cache
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from anyfolder.pixels.image_files import is_folder
from anyfolder.readers.splits import split_of

from .layout import FILE, KNOWN_FOLDER, Layout, read_layouts
from .layout_keys import texts
from .layout_yaml import read_layout_yaml

MAX_SUBFOLDERS = 30  # if the innermost folder has more subfolders, none of them is tried
MAX_NAMES = 1000  # maximum number of names in a subfolder that are compared with a wildcard
OR = '|'  # between alternative paths in ``when``, one of which must exist


class FolderLayouts(NamedTuple):
    """The layouts of a folder.

    Attributes:
        folder: the folder that their patterns are relative to.
        layouts: the layouts for all tasks. If several are for one task, the first whose labels
            exist is used.
    """

    folder: Path
    layouts: Sequence[Layout]


@cache
def known_layouts() -> dict[Path, tuple[str, ...]]:
    """The layout files of the library, each with the files that identify its data set."""
    files = sorted(KNOWN_FOLDER.glob('*.yaml'))
    return {file: texts(read_layout_yaml(file)[0]['when'], str(file)) for file in files}


def layouts_of_folder(folder: Path, given: Path | None = None) -> FolderLayouts | None:
    """The layouts of a folder: those given, those in it, or known ones.

    Args:
        folder: the folder of the data.
        given: a layout file, whose patterns are relative to the folder.

    Returns:
        The layouts; None if the folder has none.

    Raises:
        InputError: if a layout file is invalid.
    """
    file = given or folder / FILE
    if given or file.is_file():
        return FolderLayouts(folder, read_layouts(file))
    for root in _possible_roots(folder):
        if (root / FILE).is_file():
            return FolderLayouts(root, read_layouts(root / FILE))
        names = os.listdir(root)
        matches = {
            file_of_known: when
            for file_of_known, when in known_layouts().items()
            if _contains_all(when, root, names)
        }
        if matches:
            most_specific = max(matches, key=lambda file_of_known: len(matches[file_of_known]))
            return FolderLayouts(root, read_layouts(most_specific))
    return None


def _possible_roots(folder: Path) -> Iterator[Path]:
    """The folders that the patterns of a layout may be relative to.

    First comes the folder itself. While a folder has only one subfolder, that subfolder follows.
    Last come the subfolders of the innermost of these, except for folders of splits, since these
    are parts of a data set.
    """
    visited: set[Path] = set()
    while folder.resolve() not in visited:
        visited.add(folder.resolve())
        yield folder
        with os.scandir(folder) as entries:
            inner = sorted(
                entry.name for entry in entries if is_folder(entry) and entry.name[0] != '.'
            )
        if len(inner) != 1:
            break
        folder /= inner[0]
    else:  # a link has led back to a folder above it
        return
    if len(inner) <= MAX_SUBFOLDERS:
        yield from (folder / name for name in inner if not split_of(name))


def _contains_all(when: Sequence[str], folder: Path, names: Sequence[str]) -> bool:
    """Whether a folder with these names in it has all files by which a layout is recognized."""
    return all(
        any(_contains(folder, path.split('/'), names) for path in alternatives.split(OR))
        for alternatives in when
    )


def _contains(folder: Path, parts: Sequence[str], names: Sequence[str]) -> bool:
    """Whether a path exists in a folder.

    Args:
        folder: the folder.
        parts: the names of the path, which may have wildcards.
        names: the names in the folder, which are listed once for all paths.
    """
    first, *below = parts
    if not any('*' in part for part in parts):
        return first in names and (folder / '/'.join(parts)).exists()
    return any(
        not below or _contains(folder / name, below, _names_in(folder / name))
        for name in matching_names(names, first)
    )


def _names_in(folder: Path) -> list[str]:
    """At most :data:`MAX_NAMES` names in a folder, which may have millions."""
    if not folder.is_dir():
        return []
    with os.scandir(folder) as entries:
        return [entry.name for entry in islice(entries, MAX_NAMES)]
