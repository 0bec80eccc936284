"""Reading weights from files without ever running code that a file brings along."""

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
from torch import Tensor

from vit_plugin.errors import ConfigError

# What MMEngine's, MAE's and DeiT's checkpoints hold besides tensors and plain containers. A pickle that names numpy's
# array, data type or reconstruction, or `getattr`, is given the stand-ins below in their place: numpy's own would let
# it make arrays over memory of its choice.

DTYPES = {f'{kind}{size}' for kind, sizes in {'f': (2, 4, 8), 'i': (1, 2, 4, 8), 'u': (1, 2, 4, 8), 'b': (1, )}.items()
          for size in sizes}


class _DType:
    """A plain number's data type."""

    def __init__(self, code: str, *flags: Any) -> None:
        if code not in DTYPES:
            raise pickle.UnpicklingError(f'it asks for arrays of {code!r}')
        self.dtype = np.dtype(code)

    def __setstate__(self, state: tuple) -> None:
        self.dtype = self.dtype.newbyteorder({'<': '<', '>': '>'}.get(state[1], '='))


class _Array(np.ndarray):
    """An array of plain numbers, filled from bytes of the right length only."""

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
    """How an array is pickled since protocol 5."""
    array = _Array()
    array.__setstate__((1, shape, dtype, order == 'F', bytes(content) if type(content) is bytearray else content))
    return array


def _scalar(dtype: _DType, content: bytes) -> Any:
    if type(dtype) is not _DType or type(content) is not bytes or len(content) != dtype.dtype.itemsize:
        raise pickle.UnpicklingError('it asks for a number that its content does not fill')
    return np.frombuffer(content, dtype.dtype)[0]


def _history_method(owner: type, name: str) -> Any:
    """The methods of a HistoryBuffer that MMEngine's checkpoints name."""
    if owner is not HistoryBuffer or name not in ('min', 'max', 'mean', 'current'):
        raise pickle.UnpicklingError(f'it asks for {name} of {owner}')
    return getattr(owner, name)


def _stand_in(part: Any, name: str) -> Any:
    """Torch looks the admitted parts up by their own names."""
    part.__module__, _, part.__qualname__ = name.rpartition('.')
    part.__name__ = part.__qualname__
    return part


ADMITTED = [
    HistoryBuffer, argparse.Namespace, _stand_in(_history_method, 'builtins.getattr'),
    _stand_in(_Array, 'numpy.ndarray'), _stand_in(_DType, 'numpy.dtype'), *(
        _stand_in(make, f'numpy.{package}.{name}')
        for package in ('core', '_core')  # before numpy 2, and since
        for name, make in (('multiarray._reconstruct', lambda *ignored: _Array()),
                           ('multiarray.scalar', lambda *args: _scalar(*args)),
                           ('numeric._frombuffer', lambda *args: _from_buffer(*args))))]

_MAGIC = bytes.fromhex('6cfc9c46f9206aa85019')  # in front of what torch.save wrote before it wrote archives

# Names under which training scripts put the weights beside other things.
CONTAINERS = ('state_dict', 'model', 'module', 'teacher', 'model_state_dict')


class LazyArrays(Mapping):
    """Tensors that are read from their file when they are asked for, one at a time."""

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
    """The weights in a file, by name.

    Args:
        path: a ``.npz``, ``.safetensors``, or what ``torch.save`` or ``pickle`` wrote.

    Raises:
        ConfigError: if the file is missing, damaged, or a pickle with anything but tensors, arrays and plain
            containers, none of which is then run.
    """
    content = read_checkpoint(path, mmap=True)
    return content if isinstance(content, LazyArrays) else find_weights(content)


def read_checkpoint(path: str | Path, **kwargs: Any) -> Any:
    """All that is in a file: the weights alone, or with them what a training script saved beside them.

    Args:
        path: see :func:`read_weights`, which raises the same.
        kwargs: of ``torch.load``, where it is what ``torch.save`` wrote.
    """
    path = Path(path)
    if not path.is_file():
        raise ConfigError(f'There is no checkpoint file {str(path)!r}.')
    with _one_sentence(path):
        if path.suffix == '.npz':
            return _read_npz(path)
        if path.suffix == '.safetensors':
            return _read_safetensors(path)
        return _read_pickle(path, **kwargs)


@contextmanager
def _one_sentence(path: Path) -> Iterator[None]:
    try:
        yield
    except pickle.UnpicklingError as error:
        raise ConfigError(
            f'The checkpoint {str(path)!r} is damaged, or holds more than tensors and plain containers, and is not '
            f'read, since that could run code ({_first_sentence(error)}); save its weights alone, best as '
            '.safetensors, or admit what you trust with torch.serialization.add_safe_globals.') from error
    except Exception as error:  # whatever a reader trips over in a damaged file
        raise ConfigError(f'The checkpoint {str(path)!r} cannot be read ({_first_sentence(error)}); it may be cut '
                          'short: fetch it again.') from error


def find_weights(content: Any) -> Mapping[str, Tensor]:
    """The weights in what a training script saved: the tensors in it, or in the first container that has any.

    Raises:
        ConfigError: if there are none.
    """
    while isinstance(content, Mapping):
        if isinstance(content, LazyArrays):
            return content
        inner = next((content[name] for name in CONTAINERS if isinstance(content.get(name), Mapping)), None)
        if inner is None:
            weights = {name: torch.from_numpy(np.array(value)) if isinstance(value, np.ndarray) else value
                       for name, value in content.items() if isinstance(value, (Tensor, np.ndarray))}
            if weights:
                return weights
            break
        content = inner
    raise ConfigError('The checkpoint holds no weights: no tensor by a name, nor any of the containers '
                      f'{", ".join(CONTAINERS)}.')


def _read_npz(path: Path) -> Mapping[str, Tensor]:
    with zipfile.ZipFile(path):  # numpy leaves a damaged file open
        arrays = np.load(path, allow_pickle=False)

    def read(name: str) -> Tensor:
        with _one_sentence(path):
            array = arrays[name]
        if array.dtype.kind == 'V' and array.dtype.itemsize == 2:  # numpy knows no bfloat16
            return torch.from_numpy(array.view(np.uint16)).view(torch.bfloat16).float()
        return torch.from_numpy(array)

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
    """For plain pickles of numpy arrays, as detectron2's model zoo has them."""

    allowed = {(part.__module__, part.__qualname__): part for part in ADMITTED} | {
        ('collections', 'OrderedDict'): collections.OrderedDict}

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self.allowed:
            raise pickle.UnpicklingError(f'it asks for {module}.{name}')
        return self.allowed[module, name]


def _first_sentence(error: Exception) -> str:
    asked = re.search(r'GLOBAL (\S+)', str(error))  # far down in what torch's restricted reader says
    if asked:
        return f'it asks for {asked[1]}'
    return str(error).strip().splitlines()[0].split('. ')[0] if str(error).strip() else type(error).__name__
