"""Reject output that would be written into the folder of the data, directly or through links."""

import os
from contextlib import suppress
from pathlib import Path

from anyfolder.dataset import Dataset
from anyfolder.errors import InputError
from anyfolder.pixels.image_files import is_folder


def check_outside(data: Dataset, out: Path) -> None:
    """Raise an ``InputError`` if a path is inside a folder that a dataset was read from.

    These are its folder and the targets of links in it.
    """
    real = Path(os.path.realpath(out))
    for folder in real_folders(data):
        if folder == real or folder in real.parents:
            raise InputError(
                f'{str(out)!r} is inside {str(folder)!r}, which is read; give a path outside of it.'
            )


def check_no_source(data: Dataset, file: Path) -> None:
    """Raise an ``InputError`` if a file is one of those that a dataset was read from."""
    check_outside(data, file)
    if not file.exists():
        return
    status = os.stat(file)
    for _, image in data.images():
        for source in filter(None, (image.path, image.mask)):
            if os.path.samestat(os.stat(source), status):
                raise InputError(
                    f'{str(file)!r} is {str(source)!r}, which is read; give another file.'
                )


def real_folders(data: Dataset) -> set[Path]:
    """The folder of a dataset and the targets of links in it, with resolved paths."""
    to_visit, visited = [os.path.realpath(data.source)], set[str]()
    folders = {Path(to_visit[0])}
    while to_visit:
        folder = to_visit.pop()
        if folder in visited:
            continue
        visited.add(folder)
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if is_folder(entry):
                    real = os.path.realpath(entry.path)
                    to_visit.append(real)
                    if entry.is_symlink():
                        folders.add(Path(real))
    return folders
