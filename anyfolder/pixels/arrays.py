"""Read NumPy and HDF5 arrays from untrusted files: headers are checked against the file's size.

A header can claim any shape, an archive of a few megabytes can hold gigabytes of zeros, and HDF5
can fill in values or take them from another file.
"""

import math
import os
import weakref
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, BinaryIO, NamedTuple

import numpy as np

from anyfolder.errors import needed_by
from anyfolder.limits import check_limit, describe_excess

UNPACKED_BYTES = 1 << 28  # the bytes to which any file may unpack, however small it is


class ArrayHeader(NamedTuple):
    """Shape and type of an array, and the bytes of its values."""

    shape: tuple[int, ...]
    dtype: np.dtype
    bytes: int


def header_in(file: IO[bytes], length: int) -> ArrayHeader:
    """The header of an array in NumPy's format (.npy). The file is positioned after it.

    Args:
        file: the file.
        length: the number of bytes from its position on.

    Raises:
        ValueError: if there is no header, or one of an unknown version, or if it claims more than
            these bytes.
    """
    start = file.tell()
    version = np.lib.format.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(
            f"it is an array in version {version} of NumPy's format; save it again with NumPy"
        )
    read = getattr(np.lib.format, f'read_array_header_{version[0]}_0')
    shape, _, dtype = read(file)
    # Object arrays are pickles of any length, and are not read.
    size = 0 if dtype.hasobject else math.prod(shape) * dtype.itemsize
    if size > length - (file.tell() - start):
        raise ValueError(f'it claims an array {shape} of {dtype}, and is cut short')
    return ArrayHeader(shape, dtype, size)


def read_array(file: BinaryIO) -> np.ndarray:
    """An array in NumPy's format, see :func:`header_in`.

    Raises:
        ValueError: see :func:`header_in`.
    """
    header_in(file, length_of(file))
    file.seek(0)
    array: np.ndarray = np.load(file, allow_pickle=False)
    return array


def length_of(file: BinaryIO) -> int:
    """The number of bytes of a file, which is then positioned at its start."""
    length = file.seek(0, os.SEEK_END)
    file.seek(0)
    return length


def open_archive(path: str | Path) -> Any:
    """The arrays of a ``.npz`` by name, each read on access.

    Raises:
        LimitError: if it has too many arrays, or unpacks to far more than its own size.
        ValueError: if an array claims more than its part of the archive.
        zipfile.BadZipFile: if it is not an archive, or damaged.
        OSError: if it cannot be read.
    """
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        _check_unpacked(path, sum(member.file_size for member in members))
        check_limit(path, 'arrays in an archive', len(members))
        for member in members:
            with archive.open(member) as content:
                if content.read(len(np.lib.format.MAGIC_PREFIX)) == np.lib.format.MAGIC_PREFIX:
                    content.seek(0)
                    header_in(content, member.file_size)
    arrays = np.load(path, allow_pickle=False)  # object arrays raise on access
    if isinstance(arrays, np.lib.npyio.NpzFile) and arrays.fid:
        # The arrays close their file when they are collected. In a cycle of references, the file
        # may be collected first, of which Python warns.
        weakref.finalize(arrays, arrays.fid.close)
    return arrays


def _check_unpacked(path: str | Path, size: int) -> None:
    """Raise a ``LimitError`` if a file unpacks to far more bytes than it has.

    Up to :data:`UNPACKED_BYTES` are allowed for every file.
    """
    if size > UNPACKED_BYTES:
        times = size / max(os.path.getsize(path), 1)
        check_limit(path, 'times the bytes of its file, unpacked', times)


@contextmanager
def hdf5_array(path: str | Path, name: str) -> Iterator[Any]:
    """An HDF5 array, whose values are read when it is indexed.

    Raises:
        KeyError: if there is no array of this name.
        ValueError: if its values are in other files, or if it has too many slices or values. The
            message names the array; the caller adds the file.
        LimitError: if it unpacks to far more than the size of the file, which the message names.
        OSError: if the file cannot be read.
        MissingExtraError: without h5py.
    """
    with needed_by('a volume in HDF5'):
        import h5py
    with h5py.File(path, 'r') as file:
        if file.get(name, getlink=True) is None:
            raise KeyError(name)
        # HardLink: neither a link to another file nor a soft link.
        array = file[name] if isinstance(file.get(name, getlink=True), h5py.HardLink) else None
        if not isinstance(array, h5py.Dataset) or array.is_virtual or array.external:
            raise ValueError(f'its {name} is not an array with values in this file')
        if array.ndim and (excess := describe_excess('slices', len(array))):
            raise ValueError(f'its {name} {excess}')
        # A slice is read at once, and so is a chunk, which HDF5 decompresses as a whole.
        values_at_once = max(math.prod(array.shape[1:]), math.prod(array.chunks or ()))
        if excess := describe_excess('values in an image of bands', values_at_once):
            raise ValueError(f'its {name} {excess}')
        _check_unpacked(path, array.nbytes)
        yield array
