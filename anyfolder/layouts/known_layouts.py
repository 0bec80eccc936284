"""Layouts of public data sets that come with the library, recognized by files that are there."""

import os
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import NamedTuple

from .layout import FILE, Layout, read_layouts

KNOWN = Path(__file__).with_name('known')
MAX_ENTRIES = 30  # of a folder whose subfolders are tried, too


class PlacedLayouts(NamedTuple):
    """The layouts of a folder.

    Attributes:
        folder: where their patterns begin.
        layouts: one for each task, or several, of which the first whose labels are there counts.
    """

    folder: Path
    layouts: Sequence[Layout]


@cache
def known_layouts() -> dict[str, list[Layout]]:
    """The layouts that come with the library, by the names of their files."""
    return {file.stem: read_layouts(file) for file in sorted(KNOWN.glob('*.yaml'))}


def layouts_in(folder: Path, given: Path | None = None) -> PlacedLayouts | None:
    """The layouts of a folder: those given, those in it, or known ones.

    Args:
        folder: of the data.
        given: a layout file. Its patterns begin at the folder.

    Raises:
        InputError: if a layout file has faults.
    """
    file = given or folder / FILE
    if given or file.is_file():
        return PlacedLayouts(folder, read_layouts(file))
    for place in _places(folder):
        if (place / FILE).is_file():
            return PlacedLayouts(place, read_layouts(place / FILE))
        names = os.listdir(place)
        found = [
            layouts for layouts in known_layouts().values() if _is_there(layouts[0], place, names)
        ]
        if found:
            most = max(found, key=lambda layouts: len(layouts[0].when))
            return PlacedLayouts(place, most)
    return None


def _places(folder: Path) -> Iterator[Path]:
    """A folder, the only one in it and so on, and the folders in the last of these."""
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
        yield from (folder / name for name in inner)


def _is_there(layout: Layout, folder: Path, names: Sequence[str]) -> bool:
    """Whether a folder has all files by which a layout is recognized."""
    for path in layout.when:
        first, _, rest = path.partition('/')
        found = [name for name in names if name == first or fnmatch(name, first)]
        if not any(not rest or (folder / name / rest).exists() for name in found):
            return False
    return bool(layout.when)
