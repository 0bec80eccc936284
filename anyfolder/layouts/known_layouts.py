"""Layouts of public data sets that come with the library, recognized by files in a folder."""

import os
from collections.abc import Iterator, Sequence
from fnmatch import filter as matching_names
from functools import cache
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from anyfolder.readers.splits import split_of

from .layout import FILE, Layout, read_layouts
from .layout_keys import texts
from .layout_yaml import read_layout_yaml

KNOWN_FOLDER = Path(__file__).with_name('known')
MAX_ENTRIES = 30  # maximum number of entries in a folder whose subfolders are tried as well
MAX_NAMES = 1000  # maximum number of names in a folder that are compared with a wildcard
OR = '|'  # between alternative paths, one of which must exist


class PlacedLayouts(NamedTuple):
    """The layouts of a folder.

    Attributes:
        folder: where their patterns begin.
        layouts: one for each task, or several, of which the first whose labels exist counts.
    """

    folder: Path
    layouts: Sequence[Layout]


@cache
def known_layouts() -> dict[Path, tuple[str, ...]]:
    """The layout files of the library, each with the files that identify its data set."""
    files = sorted(KNOWN_FOLDER.glob('*.yaml'))
    return {file: texts(read_layout_yaml(file)[0]['when'], str(file)) for file in files}


def layouts_in(folder: Path, given: Path | None = None) -> PlacedLayouts | None:
    """The layouts of a folder: those given, those in it, or known ones.

    Args:
        folder: of the data.
        given: a layout file. Its patterns begin at the folder.

    Raises:
        InputError: if a layout file is invalid.
    """
    file = given or folder / FILE
    if given or file.is_file():
        return PlacedLayouts(folder, read_layouts(file))
    for place in _places(folder):
        if (place / FILE).is_file():
            return PlacedLayouts(place, read_layouts(place / FILE))
        names = os.listdir(place)
        found = {
            known: when for known, when in known_layouts().items() if _is_there(when, place, names)
        }
        if found:
            return PlacedLayouts(place, read_layouts(max(found, key=lambda one: len(found[one]))))
    return None


def _places(folder: Path) -> Iterator[Path]:
    """A folder, the only folder inside and so on, and the folders in the last of these.

    Folders of splits are excluded, since they are parts of a data set.
    """
    while True:
        yield folder
        with os.scandir(folder) as entries:
            inner = sorted(
                entry.name for entry in entries if entry.is_dir() and not entry.name.startswith('.')
            )
        if len(inner) != 1:
            break
        folder /= inner[0]
    if len(inner) <= MAX_ENTRIES:
        yield from (folder / name for name in inner if not split_of(name))


def _is_there(when: Sequence[str], folder: Path, names: Sequence[str]) -> bool:
    """Whether a folder with these names in it has all files by which a layout is recognized."""
    return all(
        any(_has(folder, place.split('/'), names) for place in places.split(OR)) for places in when
    )


def _has(folder: Path, parts: Sequence[str], names: Sequence[str]) -> bool:
    """Whether a path exists in a folder. The path may have wildcards."""
    first, *rest = parts
    if not any('*' in part for part in parts):
        return first in names and (folder / '/'.join(parts)).exists()
    found = matching_names(names, first)
    return any(not rest or _has(folder / name, rest, _names_in(folder / name)) for name in found)


def _names_in(folder: Path) -> list[str]:
    """The first names in a folder, which may have millions."""
    if not folder.is_dir():
        return []
    with os.scandir(folder) as entries:
        return [entry.name for entry in islice(entries, MAX_NAMES)]
