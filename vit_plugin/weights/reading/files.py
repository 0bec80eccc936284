"""Read checkpoint files of any format, without running their code.

A pickle can run any code when it is loaded, so only tensors and plain containers are accepted.
"""

import errno
import pickle
import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import safe_open
from torch import Tensor

from anyfolder.pixels.arrays import open_archive
from anyfolder.pixels.image_files import IMAGE_SUFFIXES
from vit_plugin.errors import ConfigError, first_line, is_out_of_memory

from .folders import check_complete, read_folder
from .lazy import Lazy, Weights
from .pickles import read_pickle
from .shards import INDEX, read_shards
from .size_checks import check_weight_limit
from .tensors import from_numpy

# Suffix of a file that is not a checkpoint -> what it is, and the remedy.
NOT_CHECKPOINTS = {
    **dict.fromkeys(
        IMAGE_SUFFIXES, 'an image, where a checkpoint is expected; are the arguments swapped?'
    ),
    **dict.fromkeys(
        ('.onnx', '.pt2'),
        'an exported model, where a checkpoint is expected; give the run that it came from.',
    ),
}
# Errors of the system that say nothing about a file.
SYSTEM_ERRORS = (errno.EACCES, errno.EPERM, errno.EMFILE, errno.ENFILE)


class DamagedError(ConfigError):
    """A file that no reader can read, maybe because it is damaged. A download is then removed."""


def read_checkpoint(path: str | Path, **kwargs: Any) -> Any:
    """Read a complete file: the weights and everything that a training script saved with them.

    Of a folder, read only the weights and ``meta``.

    Args:
        path: a file of the type ``.npz`` or ``.safetensors``, the index of several of the latter,
            a file from ``torch.save`` or ``pickle``, or a checkpoint folder, see
            :mod:`vit_plugin.weights.reading.folders`.
        kwargs: arguments of :func:`~vit_plugin.weights.reading.pickles.read_pickle`, for files from
            ``torch.save``.

    Raises:
        ConfigError: if the file is missing or damaged, or if a pickle contains more than tensors,
            arrays and plain containers. Nothing in it is run.
    """
    path = Path(path)
    if path.is_dir():
        check_complete(path)
    elif not path.is_file():
        raise ConfigError(f'There is no checkpoint file {str(path)!r}.')
    elif mistake := NOT_CHECKPOINTS.get(path.suffix.lower()):
        raise ConfigError(f'{str(path)!r} is {mistake}')
    with _one_sentence(path):
        if path.is_dir():
            return read_folder(path)
        if path.name == INDEX:
            return read_shards(path)
        suffix = format_suffix(path)
        if suffix == '.npz':
            return _read_npz(path)
        if suffix == '.safetensors':
            return _read_safetensors(path)
        return read_pickle(path, **kwargs)


def format_suffix(path: Path) -> str:
    """The suffix of the file's format: by its content if the name does not state a known one.

    For example, a download may have no name.
    """
    if path.suffix in ('.npz', '.safetensors'):
        return path.suffix
    with open(path, 'rb') as file:
        head = file.read(9)
    # safetensors: the length of a JSON object in 8 bytes, then the object.
    if head[8:] == b'{' and int.from_bytes(head[:8], 'little') < path.stat().st_size:
        return '.safetensors'
    if head[:2] == b'PK' and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            if all(name.endswith('.npy') for name in archive.namelist()):
                return '.npz'
    return path.suffix


def check_readable(path: Path) -> None:
    """Raise what :func:`read_checkpoint` would raise, also for tensors that are read on access."""
    read_checkpoint(path, mmap=True)
    if zipfile.is_zipfile(path) and format_suffix(path) == '.npz':
        with _one_sentence(path), zipfile.ZipFile(path) as archive:
            if damaged := archive.testzip():
                raise zipfile.BadZipFile(f'{damaged} is not what was written')


@contextmanager
def _one_sentence(path: Path) -> Iterator[None]:
    """Turn any error of a reader into a ``ConfigError`` that names the file and a remedy."""
    try:
        yield
    except ConfigError:
        raise
    except pickle.UnpicklingError as error:
        raise ConfigError(
            f'The checkpoint {str(path)!r} is damaged, or holds more than tensors and plain '
            f'containers, and is not read, since that could run code ({_first_sentence(error)}); '
            'save its weights alone, best as .safetensors, or admit what you trust with '
            'torch.serialization.add_safe_globals.'
        ) from error
    except Exception as error:  # a damaged file can raise any error in a reader
        if is_out_of_memory(error) or 'Cannot allocate memory' in str(error):  # torch's mmap
            raise ConfigError(
                f'There is not enough memory to read the checkpoint {str(path)!r} '
                f'({_first_sentence(error)}); free some, or give a smaller file.'
            ) from error
        if getattr(error, 'errno', None) in SYSTEM_ERRORS:
            raise ConfigError(
                f'The checkpoint {str(path)!r} cannot be read ({_first_sentence(error)}); allow '
                'this process to read it, or to open more files.'
            ) from error
        raise DamagedError(
            f'The checkpoint {str(path)!r} cannot be read ({_first_sentence(error)}); it may be '
            'damaged or cut short: download it again.'
        ) from error


def _read_npz(path: Path) -> Weights:
    """The arrays of an ``.npz`` archive, each read on access."""
    arrays = open_archive(path)

    def read(name: str) -> Tensor:
        with _one_sentence(path):
            array = arrays[name]
        if not isinstance(array, np.ndarray):
            raise ConfigError(
                f'{name!r} in {str(path)!r} is not an array; save the arrays alone, with '
                'numpy.savez.'
            )
        # numpy has no bfloat16; jax's is read back as two bytes without a type.
        if array.dtype.kind == 'V' and array.dtype.itemsize == 2:
            return torch.from_numpy(array.view(np.uint16)).view(torch.bfloat16).float()
        return from_numpy(name, array)

    return Lazy(arrays.files, read)


def _read_safetensors(path: Path) -> Weights:
    """The tensors of a file, each read on access. The first 8 bytes are the size of its header."""
    with open(path, 'rb') as content:
        check_weight_limit(
            path, 'bytes of names and shapes', int.from_bytes(content.read(8), 'little')
        )
    file = safe_open(path, framework='pt')
    return Lazy(file.keys(), file.get_tensor)


def _first_sentence(error: Exception) -> str:
    """The message of an error, without the hints that torch's restricted reader appends to it."""
    forbidden = re.search(r'GLOBAL (\S+)', str(error))
    if forbidden:
        return f'it asks for {forbidden[1]}'
    return first_line(error).split('. ')[0] if str(error).strip() else type(error).__name__
