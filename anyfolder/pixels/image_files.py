"""Find the images among files, by suffix or content, without files that operating systems leave."""

import os
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from anyfolder.errors import InputError
from anyfolder.limits import check_limit

from .image_headers import displayed_size
from .plain_headers import may_be_image
from .volume_slices import file_and_number, is_sliced, slices_of

# The suffixes of supported formats. A file with another suffix is an image if its content is.
IMAGE_SUFFIXES = (
    '.jpg',
    '.jpeg',
    '.jpe',
    '.jfif',
    '.png',
    '.bmp',
    '.webp',
    '.tif',
    '.tiff',
    '.avif',
    '.gif',
    '.heic',
    '.heif',
    '.jp2',
    '.ppm',
    '.pgm',
    '.pbm',
)
# Files that operating systems leave in folders.
OS_METADATA = (
    'thumbs.db',
    'desktop.ini',
    '__macosx',
    '@eadir',  # thumbnails of Synology
    '$recycle.bin',
    'system volume information',
    'lost+found',
)


def is_os_metadata(path: Path | os.DirEntry[str]) -> bool:
    """True for a file or folder that an operating system left: hidden, or such as ``Thumbs.db``."""
    return path.name.startswith('.') or path.name.lower() in OS_METADATA


def is_image(path: Path) -> bool:
    """Return whether this is a regular file that is an image by its suffix or content."""
    # Other than regular files are not opened: reading a named pipe would block.
    if is_os_metadata(path) or not path.is_file():
        return False
    return path.name.lower().endswith(IMAGE_SUFFIXES) or _has_image_header(path)


def _has_image_header(path: Path) -> bool:
    try:
        with open(path, 'rb') as file:
            if not may_be_image(file.read(12)):
                return False
            displayed_size(file)
    except Exception:  # noqa: BLE001  decoders raise any error
        return False
    return True


def image_files(paths: Sequence[str], may_be_empty: bool = False) -> list[str]:
    """The image files among these paths, with folders searched recursively and sorted by name.

    Volumes are replaced by the names of their slices, see
    :mod:`~anyfolder.pixels.volume_slices`.

    Args:
        paths: files and folders.
        may_be_empty: whether a folder may have no images.

    Raises:
        InputError: if a path does not exist, or if a folder has no images.
    """
    files: list[str] = []
    for path in map(Path, paths):
        if path.is_dir():
            images = [str(file) for file in walk_files(path) if is_image(file) or is_sliced(file)]
            images.sort()
            if not (images or may_be_empty):
                raise InputError(
                    f'There are no images in the folder {str(path)!r}, whose names end in '
                    f'{", ".join(IMAGE_SUFFIXES)}.'
                )
            files += chain.from_iterable(map(slices_of, images))
        elif Path(file_and_number(str(path))[0]).is_file():
            files += slices_of(str(path))
        else:
            raise InputError(f'There is no image {str(path)!r}.')
    return files


def is_folder(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is a folder, or leads to one; false for a link to itself."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def _is_regular(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:  # from a link to itself
        return False


def walk_files(
    folder: Path,
    is_skipped: Callable[[Path], bool] = lambda folder: False,
    on_repeated_link: Callable[[Path, Path], None] = lambda link, first: None,
) -> Iterator[Path]:
    """All files below a folder, sorted, except hidden ones and those of :data:`OS_METADATA`.

    Links to folders are followed, but each folder is visited only once. A broken link with the
    suffix of an image counts as a file, so that its reader reports it.

    Args:
        folder: the root of the search.
        is_skipped: returns whether to leave out a folder.
        on_repeated_link: called with each link to a folder that was already read, or that is above
            the root, and with that folder.

    Raises:
        InputError: if folders are nested too deeply.
    """
    # The path by which each real folder was visited first. Those above `folder` count as visited,
    # but the parents of ../.. include that folder itself, and folders in it.
    root = folder.resolve()
    above = {parent.resolve(): parent for parent in (*root.parents, *folder.absolute().parents)}
    path_of = {real: path for real, path in above.items() if root not in (real, *real.parents)}

    def walk(current: Path, level: int = 1) -> Iterator[Path]:
        check_limit(folder, 'levels of folders', level)
        first = path_of.setdefault(current.resolve(), current)
        if first is not current:
            on_repeated_link(current, first)
            return
        with os.scandir(current) as entries:
            by_name = sorted(entries, key=lambda entry: entry.name)
        for entry in by_name:
            if is_os_metadata(entry):
                continue
            path = current / entry.name
            if is_folder(entry):
                if not is_skipped(path):
                    yield from walk(path, level + 1)
            elif _is_regular(entry) or (
                entry.is_symlink() and path.suffix.lower() in IMAGE_SUFFIXES
            ):
                yield path

    yield from walk(folder)
