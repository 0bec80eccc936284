"""Split a checkpoint's nested dict into named tensors and JSON, and join them again.

Checkpoint folders have both in place of a pickle, since neither can hold code.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from mmengine.logging import HistoryBuffer
from torch import Tensor

from vit_plugin.errors import ConfigError

# Marks a JSON object that stands for something other than a dict: {'$': 'tuple', 'is': [1, 2]}.
KIND_KEY = '$'


def split_tensors(state: Mapping[str, Any]) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Take the tensors out of a nested state.

    Returns:
        The tensors (arrays as tensors) by their paths in the state, and the state with these paths
        in their places, ready for ``json.dumps``.

    Raises:
        ConfigError: if it contains anything but tensors, arrays, plain containers, numbers and
            strings.
    """
    tensors: dict[str, Tensor] = {}
    return tensors, _plain(state, tensors)


def _plain(value: Any, tensors: dict[str, Tensor], *path: str) -> Any:
    """The value at a path as plain JSON. What JSON lacks becomes an object with KIND_KEY.

    Its tensors are added to ``tensors``.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str(value)  # a plain str, of a subclass
    if isinstance(value, np.generic) and not isinstance(value.item(), np.generic):
        return _plain(value.item(), tensors, *path)
    if isinstance(value, (int, float)):  # JSON has no infinity and no NaN
        return value if math.isfinite(value) else {KIND_KEY: 'float', 'is': str(value)}
    if isinstance(value, Tensor):
        return {KIND_KEY: 'tensor', 'is': _add_tensor(path, value, tensors)}
    if isinstance(value, np.ndarray) and value.dtype.kind in 'fiub' and value.dtype.itemsize <= 8:
        array = torch.from_numpy(np.array(value))
        return {KIND_KEY: 'array', 'is': _add_tensor(path, array, tensors)}
    if isinstance(value, HistoryBuffer):
        log, count = value.data
        both = [_plain(log, tensors, *path, 'log'), _plain(count, tensors, *path, 'count')]
        return {KIND_KEY: 'history', 'is': both, 'length': value.max_length}
    if isinstance(value, Mapping):
        items = {key: _plain(item, tensors, *path, str(key)) for key, item in value.items()}
        if all(type(key) is str for key in items) and KIND_KEY not in items:
            return items
        pairs = [[_plain(key, tensors, *path), item] for key, item in items.items()]
        return {KIND_KEY: 'dict', 'is': pairs}
    if isinstance(value, (list, tuple)):
        items = [_plain(item, tensors, *path, str(i)) for i, item in enumerate(value)]
        return items if isinstance(value, list) else {KIND_KEY: 'tuple', 'is': items}
    raise ConfigError(
        f'The state of the run cannot be saved in a folder: {".".join(path)} is of type '
        f"{type(value).__name__}; leave it out, or give default_hooks.checkpoint.format='file'."
    )


def _add_tensor(path: Sequence[str], tensor: Tensor, tensors: dict[str, Tensor]) -> str:
    """Add the tensor at a path to ``tensors``, and return its name."""
    name = '.'.join(path)
    while name in tensors:  # a dot in a key can make two paths the same
        name += '_'
    tensors[name] = tensor
    return name


def join(plain: Any, tensors: Mapping[str, Tensor]) -> Any:
    """Put the tensors back, see :func:`split_tensors`. Only those that ``plain`` names are read.

    Raises:
        ValueError, KeyError, TypeError: if ``plain`` is not from :func:`split_tensors`.
    """
    if isinstance(plain, list):
        return [join(item, tensors) for item in plain]
    if not isinstance(plain, dict):
        return plain
    if KIND_KEY not in plain:
        return {key: join(item, tensors) for key, item in plain.items()}
    kind, value = plain[KIND_KEY], plain['is']
    if kind == 'tensor':
        return tensors[value]
    if kind == 'array':
        return tensors[value].numpy()
    if kind == 'float':
        return float(value)
    if kind == 'tuple':
        return tuple(join(item, tensors) for item in value)
    if kind == 'dict':
        return {join(key, tensors): join(item, tensors) for key, item in value}
    if kind == 'history':
        return HistoryBuffer(*(join(item, tensors) for item in value), plain['length'])
    raise ValueError(f'it has an entry of the unknown kind {kind!r}')


def tensor_names(plain: Any) -> Iterator[tuple[str, ...]]:
    """For each tensor that :func:`join` would look up: the keys leading to it, then its name."""
    if isinstance(plain, list):
        for item in plain:
            yield from tensor_names(item)
    elif isinstance(plain, dict) and plain.get(KIND_KEY) in ('tensor', 'array'):
        yield (plain['is'],)
    elif isinstance(plain, dict):
        pairs = plain['is'] if plain.get(KIND_KEY) == 'dict' else plain.items()
        for key, item in pairs:
            for path in tensor_names(item):
                yield (str(key), *path)


def to_text(plain: Any) -> str:
    """The JSON of a state without its tensors, see :func:`split_tensors`."""
    return json.dumps(plain, indent=1, allow_nan=False) + '\n'
