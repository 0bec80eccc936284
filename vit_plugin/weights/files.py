"""Read weights from files without running any code in them."""

import argparse
import collections
import io
import math
import pickle
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from mmengine.logging import HistoryBuffer
from safetensors import safe_open
from torch import Tensor, nn

from vit_plugin.errors import ConfigError

from .folders import check_whole, read_folder

# What checkpoints of MMEngine, MAE and DeiT contain besides tensors and plain containers. A pickle that names numpy's
# array, data type or reconstruction, or `getattr`, gets the replacements below. With numpy's own, it could make arrays
# over any memory.

DTYPES = {f'{kind}{size}' for kind, sizes in {'f': (2, 4, 8), 'i': (1, 2, 4, 8), 'u': (1, 2, 4, 8), 'b': (1, )}.items()
          for size in sizes}


class _DType:
    """The data type of plain numbers."""

    def __init__(self, code: str, *flags: Any) -> None:
        if code not in DTYPES:
            raise pickle.UnpicklingError(f'it asks for arrays of {code!r}')
        self.dtype = np.dtype(code)

    def __setstate__(self, state: tuple) -> None:
        self.dtype = self.dtype.newbyteorder({'<': '<', '>': '>'}.get(state[1], '='))


class _Array(np.ndarray):
    """An array of plain numbers. It only accepts bytes of the correct length."""

    def __new__(cls, *ignored: Any) -> '_Array':
        return super().__new__(cls, (0, ), np.uint8)

    def __setstate__(self, state: tuple) -> None:
        version, shape, dtype, fortran, content = state
        if type(dtype) is not _DType or type(content) is not bytes or not all(type(side) is int for side in shape) or (
                len(content) != math.prod(shape) * dtype.dtype.itemsize):
            raise pickle.UnpicklingError('it asks for an array that its content does not fill')
        super().__setstate__((version, shape, dtype.dtype, bool(fortran), content))

    def __reduce_ex__(self, protocol: int) -> tuple:  # saved again, it is numpy's own
        return self.view(np.ndarray).__reduce_ex__(protocol)


def _from_buffer(content: bytes | bytearray, dtype: _DType, shape: tuple, order: str) -> _Array:
    """Rebuild an array from a pickle of protocol 5 or later."""
    array = _Array()
    array.__setstate__((1, shape, dtype, order == 'F', bytes(content) if type(content) is bytearray else content))
    return array


def _scalar(dtype: _DType, content: bytes) -> Any:
    if type(dtype) is not _DType or type(content) is not bytes or len(content) != dtype.dtype.itemsize:
        raise pickle.UnpicklingError('it asks for a number that its content does not fill')
    return np.frombuffer(content, dtype.dtype)[0]


def _history_method(owner: type, name: str) -> Any:
    """The methods of HistoryBuffer that appear in MMEngine's checkpoints."""
    if owner is not HistoryBuffer or name not in ('min', 'max', 'mean', 'current'):
        raise pickle.UnpicklingError(f'it asks for {name} of {owner}')
    return getattr(owner, name)


def _stand_in(part: Any, name: str) -> Any:
    """Give a replacement the name under which torch looks it up."""
    part.__module__, _, part.__qualname__ = name.rpartition('.')
    part.__name__ = part.__qualname__
    return part


ADMITTED = [
    HistoryBuffer, argparse.Namespace, _stand_in(_history_method, 'builtins.getattr'),
    _stand_in(_Array, 'numpy.ndarray'), _stand_in(_DType, 'numpy.dtype'), *(
        _stand_in(make, f'numpy.{package}.{name}')
        for package in ('core', '_core')  # the names before numpy 2 and since numpy 2
        for name, make in (('multiarray._reconstruct', lambda *ignored: _Array()),
                           ('multiarray.scalar', lambda *args: _scalar(*args)),
                           ('numeric._frombuffer', lambda *args: _from_buffer(*args))))]

_MAGIC = bytes.fromhex('6cfc9c46f9206aa85019')  # start of files in torch.save's old format

# Names under which training scripts save the weights.
CONTAINERS = ('state_dict', 'model', 'module', 'teacher', 'model_state_dict')


class DamagedError(ConfigError):
    """A file that its reader cannot read."""


class LazyArrays(Mapping):
    """Tensors that are read from the file one at a time, on access."""

    def __init__(self, names: list[str], read: Callable[[str], Tensor]) -> None:
        self._names, self._read = dict.fromkeys(names), read

    def __getitem__(self, name: str) -> Tensor:
        if name not in self._names:
            raise KeyError(name)
        return self._read(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def read_weights(path: str | Path) -> Mapping[str, Tensor]:
    """Read the weights in a file, by name.

    Args:
        path: a file of the type ``.npz`` or ``.safetensors``, a file from ``torch.save`` or ``pickle``, or a checkpoint
            folder, see :mod:`vit_plugin.weights.folders`.

    Raises:
        ConfigError: if the file is missing or damaged, or if a pickle contains more than tensors, arrays and plain
            containers. Nothing in it is run.
    """
    content = read_checkpoint(path, mmap=True)
    return content if isinstance(content, LazyArrays) else find_weights(content)


def read_checkpoint(path: str | Path, **kwargs: Any) -> Any:
    """Read a whole file: the weights, and what a training script saved beside them. Of a folder, only ``meta`` too.

    Args:
        path: see :func:`read_weights`. The errors are the same.
        kwargs: arguments of ``torch.load``, for files from ``torch.save``.
    """
    path = Path(path)
    if path.is_dir():
        check_whole(path)
    elif not path.is_file():
        raise ConfigError(f'There is no checkpoint file {str(path)!r}.')
    with _one_sentence(path):
        if path.is_dir():
            return read_folder(path)
        kind = _kind(path)
        if kind == '.npz':
            return _read_npz(path)
        if kind == '.safetensors':
            return _read_safetensors(path)
        return _read_pickle(path, **kwargs)


def _kind(path: Path) -> str:
    """The suffix of the file, or the one that its content asks for, as of a download without a name."""
    if path.suffix in ('.npz', '.safetensors'):
        return path.suffix
    with open(path, 'rb') as file:
        head = file.read(9)
    if head[8:] == b'{' and int.from_bytes(head[:8], 'little') < path.stat().st_size:
        return '.safetensors'
    if head[:2] == b'PK' and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            if all(name.endswith('.npy') for name in archive.namelist()):
                return '.npz'
    return path.suffix


def check_readable(path: Path) -> None:
    """Raise what :func:`read_checkpoint` would raise. Tensors that are read on access are looked at here."""
    read_checkpoint(path, mmap=True)
    if zipfile.is_zipfile(path) and _kind(path) == '.npz':
        with _one_sentence(path), zipfile.ZipFile(path) as archive:
            if damaged := archive.testzip():
                raise zipfile.BadZipFile(f'{damaged} is not what was written')


@contextmanager
def _one_sentence(path: Path) -> Iterator[None]:
    try:
        yield
    except pickle.UnpicklingError as error:
        raise ConfigError(
            f'The checkpoint {str(path)!r} is damaged, or holds more than tensors and plain containers, and is not '
            f'read, since that could run code ({_first_sentence(error)}); save its weights alone, best as '
            '.safetensors, or admit what you trust with torch.serialization.add_safe_globals.') from error
    except Exception as error:  # a damaged file can raise any error in a reader
        raise DamagedError(f'The checkpoint {str(path)!r} cannot be read ({_first_sentence(error)}); it may be cut '
                           'short: fetch it again.') from error


def find_weights(content: Any) -> Mapping[str, Tensor]:
    """Find the weights in a training script's checkpoint: its tensors, or those of the first container that has any.

    Raises:
        ConfigError: if there are no tensors, or if :func:`checked` refuses one.
    """
    seen = set()
    while isinstance(content, Mapping) and id(content) not in seen:
        seen.add(id(content))  # a damaged file may contain itself
        if isinstance(content, LazyArrays):
            return content
        inner = next((content[name] for name in CONTAINERS if isinstance(content.get(name), Mapping)), None)
        if inner is None:
            weights = {name: _from_numpy(name, value) if isinstance(value, np.ndarray) else value
                       for name, value in content.items() if isinstance(value, (Tensor, np.ndarray))}
            if weights:
                return checked(weights)
            break
        content = inner
    raise ConfigError('The checkpoint holds no weights: no tensor by a name, nor any of the containers '
                      f'{", ".join(CONTAINERS)}.')


def checked(weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    """Check the weights and return them. Tensors that are not read yet are checked on access.

    Raises:
        ConfigError: if a name is not a string, or a value is not a complete, dense tensor of plain numbers.
    """
    if not isinstance(weights, LazyArrays):
        for name, value in weights.items():
            if wrong := _what_is_wrong(name, value):
                raise ConfigError(f'The checkpoint cannot be used: {name!r} is {wrong}.')
    return weights


def _what_is_wrong(name: Any, value: Any) -> str:
    if not isinstance(name, str):
        return 'the name of a tensor, and no string'
    if not isinstance(value, Tensor):
        return f'no tensor but of type {type(value).__name__}'
    if value.layout != torch.strided or value.is_quantized or value.is_nested or value.is_complex():
        return 'sparse, quantised, nested or complex; save it as a plain tensor'
    if type(value) not in (Tensor, nn.Parameter):  # such as a shard, which checks its own content
        return ''
    if value.is_meta or value.untyped_storage().nbytes() < value.numel() * value.element_size():
        return f'of the shape {tuple(value.shape)} without content to fill it; save it contiguous'
    return ''


def _from_numpy(name: Any, array: np.ndarray) -> Tensor:
    if array.dtype.kind not in 'fiub':
        raise ConfigError(f'The checkpoint cannot be used: {name!r} is an array of {array.dtype}, not of numbers.')
    native = array.dtype.newbyteorder('=')  # torch has no other byte order
    return torch.from_numpy(np.array(array, native))


def _read_npz(path: Path) -> Mapping[str, Tensor]:
    with zipfile.ZipFile(path):  # numpy does not close a damaged file
        arrays = np.load(path, allow_pickle=False)

    def read(name: str) -> Tensor:
        with _one_sentence(path):
            array = arrays[name]
        if array.dtype.kind == 'V' and array.dtype.itemsize == 2:  # numpy has no bfloat16
            return torch.from_numpy(array.view(np.uint16)).view(torch.bfloat16).float()
        return _from_numpy(name, array)

    return LazyArrays(arrays.files, read)


def _read_safetensors(path: Path) -> Mapping[str, Tensor]:
    file = safe_open(path, framework='pt')
    return LazyArrays(list(file.keys()), file.get_tensor)


def _read_pickle(path: Path, map_location: Any = 'cpu', mmap: bool = False) -> Any:
    with open(path, 'rb') as file:
        head = file.read(16)
    zipped = zipfile.is_zipfile(path)
    if zipped or _MAGIC in head:
        with torch.serialization.safe_globals(ADMITTED):
            return torch.load(path, map_location=map_location, weights_only=True, mmap=mmap and zipped)
    return _ArrayUnpickler(io.BytesIO(path.read_bytes())).load()


class _ArrayUnpickler(pickle.Unpickler):
    """Reads plain pickles of numpy arrays, such as those of detectron2's model zoo."""

    allowed = {(part.__module__, part.__qualname__): part for part in ADMITTED} | {
        ('collections', 'OrderedDict'): collections.OrderedDict}

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self.allowed:
            raise pickle.UnpicklingError(f'it asks for {module}.{name}')
        return self.allowed[module, name]


def _first_sentence(error: Exception) -> str:
    asked = re.search(r'GLOBAL (\S+)', str(error))  # at the end of the message of torch's restricted reader
    if asked:
        return f'it asks for {asked[1]}'
    return str(error).strip().splitlines()[0].split('. ')[0] if str(error).strip() else type(error).__name__
