"""Slices of medical volumes in the files of TransUNet's authors: ``NAME.npz``, ``VOLUME.npy.h5``.

An ``.npz`` has one slice. A slice of a volume is named by its number, from 0, after the file:
``VOLUME.npy.h5[12]``. The array of the pixels is called ``image``.
"""

import re
from pathlib import Path

import numpy as np

from anyfolder.errors import InputError, rejecting

from .arrays import hdf5_array, open_archive

SLICE_SUFFIX, VOLUME_SUFFIX = '.npz', '.npy.h5'  # slices for training, volumes for testing
SLICE_NAME = re.compile(r'(.+(?:\.npz|\.h5|\.hdf5))(?:\[(\d+)\])?', re.IGNORECASE | re.DOTALL)


def file_and_number(name: str) -> tuple[str, int | None]:
    """The file of a slice, and its number in it; None for a file of one slice, or another file."""
    if found := SLICE_NAME.fullmatch(name):
        return found[1], None if found[2] is None else int(found[2])
    return name, None


def is_sliced(path: Path) -> bool:
    """True if a file in a folder has slices; other files can have any arrays."""
    if path.name.lower().endswith(VOLUME_SUFFIX):
        return True
    if path.suffix.lower() != SLICE_SUFFIX:
        return False
    try:
        with open_archive(path) as file:
            return 'image' in file
    except Exception:  # noqa: BLE001  readers of damaged archives raise any error
        return False


def slices_of(path: str) -> list[str]:
    """The names of the slices in a volume; for any other file, or a slice, only its own name.

    Raises:
        InputError: if a volume cannot be read, or has no slices.
        MissingExtraError: for HDF5 without h5py.
    """
    file, number = file_and_number(path)
    if number is not None or not SLICE_NAME.fullmatch(path) or file.lower().endswith(SLICE_SUFFIX):
        return [path]
    with rejecting(f'The volume {path!r} cannot be read', 'leave it out, or save it again'):
        count = number_of_slices(path)
    if not count:
        raise InputError(f'The volume {path!r} has no slices; leave it out.')
    digits = len(str(count - 1))  # zeros in front, so that names sort as numbers do
    return [f'{path}[{i:0{digits}}]' for i in range(count)]


def number_of_slices(path: str | Path) -> int:
    """The number of slices of a volume."""
    with hdf5_array(path, 'image') as array:
        return len(array)


def read_slice(path: str | Path, number: int | None, name: str = 'image') -> np.ndarray:
    """The array (H, W) of this name, from a slice of a volume or a file with one slice.

    Raises:
        ValueError: if the file has no slices, or the array has another shape.
        KeyError: if there is no such array.
        OSError: if the file cannot be read.
        MissingExtraError: for HDF5 without h5py.
    """
    if not SLICE_NAME.fullmatch(str(path)):
        raise ValueError('it has no slices, as .npz and .h5 have')
    if number is None:
        with open_archive(path) as file:
            array = file[name]
    else:
        with hdf5_array(path, name) as volume:
            array = volume[number]
    if array.ndim != 2:
        raise ValueError(f'its {name} has the shape {array.shape}, and not (H, W)')
    return array
