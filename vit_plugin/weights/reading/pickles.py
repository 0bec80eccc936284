"""Read pickles, also those in files from ``torch.save``, without running any code in them."""

import argparse
import collections
import io
import math
import pickle
import types
import zipfile
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np
import torch
from mmengine.logging import HistoryBuffer

from vit_plugin.errors import ConfigError

from .size_checks import check_member_sizes, check_pickle, check_stored_pickle

# Checkpoints of MMEngine, MAE and DeiT contain the types in `ADMITTED` besides tensors and plain
# containers. A pickle that names numpy's array, data type or reconstruction, or `getattr`, gets the
# replacements below. With numpy's own, it could make arrays over any memory.

PICKLED_DTYPES = {
    f'{kind}{size}'
    for kind, sizes in {'f': (2, 4, 8), 'i': (1, 2, 4, 8), 'u': (1, 2, 4, 8), 'b': (1,)}.items()
    for size in sizes
}


class _DType:
    """The data type of plain numbers."""

    def __init__(self, code: str, *flags: Any) -> None:
        if code not in PICKLED_DTYPES:
            raise pickle.UnpicklingError(f'it asks for arrays of {code!r}')
        self.dtype = np.dtype(code)

    def __setstate__(self, state: tuple) -> None:
        self.dtype = self.dtype.newbyteorder(state[1] if state[1] in ('<', '>') else '=')


class _Array(np.ndarray):
    """An array of plain numbers. It only accepts bytes of the correct length."""

    def __new__(cls, *ignored: Any) -> '_Array':
        return super().__new__(cls, (0,), np.uint8)

    def __setstate__(self, state: tuple) -> None:
        version, shape, dtype, fortran, content = state
        if (
            type(dtype) is not _DType
            or type(content) is not bytes
            or not all(type(side) is int for side in shape)
            or (len(content) != math.prod(shape) * dtype.dtype.itemsize)
        ):
            raise pickle.UnpicklingError('it asks for an array of another size than its content')
        plain: Any = (version, shape, dtype.dtype, bool(fortran), content)
        super().__setstate__(plain)

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:  # saved again as numpy's own class
        return self.view(np.ndarray).__reduce_ex__(protocol)


def _from_buffer(content: bytes | bytearray, dtype: _DType, shape: tuple, order: str) -> _Array:
    """Rebuild an array from a pickle of protocol 5 or later."""
    array = _Array()
    array.__setstate__(
        (1, shape, dtype, order == 'F', bytes(content) if type(content) is bytearray else content)
    )
    return array


def _scalar(dtype: _DType, content: bytes) -> Any:
    """Rebuild a numpy number."""
    if (
        type(dtype) is not _DType
        or type(content) is not bytes
        or len(content) != dtype.dtype.itemsize
    ):
        raise pickle.UnpicklingError('it asks for a number of another size than its content')
    return np.frombuffer(content, dtype.dtype)[0]


def _history_method(owner: type, name: str) -> Any:
    """``getattr`` for the methods of HistoryBuffer that appear in MMEngine's checkpoints."""
    if owner is not HistoryBuffer or name not in ('min', 'max', 'mean', 'current'):
        raise pickle.UnpicklingError(f'it asks for {name} of {owner}')
    return getattr(owner, name)


def _stand_in(replacement: Any, name: str) -> Any:
    """Give a replacement the name under which torch looks it up, and return it."""
    replacement.__module__, _, replacement.__qualname__ = name.rpartition('.')
    replacement.__name__ = replacement.__qualname__
    return replacement


ADMITTED = [
    HistoryBuffer,
    argparse.Namespace,
    types.SimpleNamespace,
    _stand_in(_history_method, 'builtins.getattr'),
    _stand_in(_Array, 'numpy.ndarray'),
    _stand_in(_DType, 'numpy.dtype'),
    *(
        _stand_in(make, f'numpy.{package}.{name}')
        for package in ('core', '_core')  # the names before numpy 2 and since numpy 2
        for name, make in (  # lambdas, since each name needs a function of its own
            ('multiarray._reconstruct', lambda *ignored: _Array()),
            ('multiarray.scalar', lambda *args: _scalar(*args)),
            ('numeric._frombuffer', lambda *args: _from_buffer(*args)),
        )
    ),
]

NUM_PICKLES = 5  # number of pickles before the tensors in torch.save's old format
_MAGIC = bytes.fromhex('6cfc9c46f9206aa85019')  # start of files in torch.save's old format


def read_pickle(
    path: Path, map_location: Any = 'cpu', mmap: bool = False, payload: bool = True
) -> Any:
    """Read a file from ``torch.save`` or ``pickle``.

    Args:
        path: the file.
        map_location, mmap: arguments of ``torch.load``, for files from ``torch.save``.
        payload: whether the tensors will be used. Otherwise only the checksums of the rest are
            compared.

    Raises:
        pickle.UnpicklingError: if the file contains more than tensors, arrays and plain containers.
        zipfile.BadZipFile: if a member of an archive from ``torch.save`` differs from its checksum.
        ConfigError: if a member of such an archive is compressed, or see
            :mod:`~vit_plugin.weights.reading.size_checks`.
    """
    with open(path, 'rb') as file:
        head = file.read(16)  # the magic number follows the protocol and an opcode
    zipped = zipfile.is_zipfile(path)
    if zipped:
        check_archive(path, payload)
    else:
        with open(path, 'rb') as file:
            for _ in range(NUM_PICKLES if _MAGIC in head else 1):
                check_pickle(path, file)
    if zipped or _MAGIC in head:
        with torch.serialization.safe_globals(ADMITTED):
            return torch.load(
                path, map_location=map_location, weights_only=True, mmap=mmap and zipped
            )
    return _ArrayUnpickler(io.BytesIO(path.read_bytes())).load()


def check_archive(path: Path, payload: bool = True) -> None:
    """Verify an archive's sizes and checksums, and reject compressed members.

    torch does not check them, and would map compressed members as if they were not.

    Raises:
        zipfile.BadZipFile: see :func:`read_pickle`.
        ConfigError: see :func:`read_pickle`.
    """
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        check_member_sizes(path, archive)
        packed = [
            member.filename for member in members if member.compress_type != zipfile.ZIP_STORED
        ]
        if packed:
            raise ConfigError(
                f'The checkpoint {str(path)!r} was compressed after it was saved ({packed[0]}), '
                'which torch cannot map; unpack the archive and zip it again without compression '
                '(zip -0).'
            )
        for member in members:
            if member.filename.endswith('data.pkl'):
                check_stored_pickle(path, member)
        # Written with torch.serialization.set_crc32_options(False).
        if not any(member.CRC for member in members):
            return
        for member in members:
            if payload or '/data/' not in member.filename:
                with archive.open(member) as content:
                    while content.read(1 << 20):  # the checksum is verified at the end
                        pass


class _ArrayUnpickler(pickle.Unpickler):
    """Reads plain pickles of numpy arrays, such as those of detectron2's model zoo."""

    allowed = {(admitted.__module__, admitted.__qualname__): admitted for admitted in ADMITTED} | {
        ('collections', 'OrderedDict'): collections.OrderedDict
    }

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self.allowed:
            raise pickle.UnpicklingError(f'it asks for {module}.{name}')
        return self.allowed[module, name]
