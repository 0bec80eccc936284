"""A checkpoint's nested dict as named tensors and JSON, and back. Neither can hold code."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from mmengine.logging import HistoryBuffer
from torch import Tensor

from vit_plugin.errors import ConfigError

KIND_KEY = '$'  # marks a JSON object that stands for something other than a dict


def split_tensors(state: Mapping[str, Any]) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Take the tensors out of a nested state.

    Returns:
        The tensors (arrays as tensors) by their paths in the state, and the rest with names in
        their places, ready for ``json.dumps``.

    Raises:
        ConfigError: if it contains anything but tensors, arrays, plain containers, numbers and
            strings.
    """
    tensors: dict[str, Tensor] = {}

    def named(way: Sequence[str], tensor: Tensor) -> str:
        place = '.'.join(way)
        while place in tensors:  # a dot in a key can make two places the same
            place += '_'
        tensors[place] = tensor
        return place

    def plain(value: Any, *way: str) -> Any:
        if value is None or isinstance(value, (bool, str)):
            return str(value) if isinstance(value, str) else value
        if isinstance(value, np.generic):
            return plain(value.item(), *way)
        if isinstance(value, (int, float)):
            return value if math.isfinite(value) else {KIND_KEY: 'float', 'is': str(value)}
        if isinstance(value, Tensor):
            return {KIND_KEY: 'tensor', 'is': named(way, value)}
        if isinstance(value, np.ndarray) and value.dtype.kind in 'fiub':
            return {KIND_KEY: 'array', 'is': named(way, torch.from_numpy(np.array(value)))}
        if isinstance(value, HistoryBuffer):
            log, count = value.data
            return {
                KIND_KEY: 'history',
                'is': [plain(log, *way, 'log'), plain(count, *way, 'count')],
                'length': value.max_length,
            }
        if isinstance(value, Mapping):
            items = {key: plain(item, *way, str(key)) for key, item in value.items()}
            if all(type(key) is str for key in items) and KIND_KEY not in items:
                return items
            return {
                KIND_KEY: 'dict',
                'is': [[plain(key, *way), item] for key, item in items.items()],
            }
        if isinstance(value, (list, tuple)):
            items = [plain(item, *way, str(i)) for i, item in enumerate(value)]
            return items if isinstance(value, list) else {KIND_KEY: 'tuple', 'is': items}
        raise ConfigError(
            f'The state of the run cannot be saved in a folder: {".".join(way)} is of type '
            f"{type(value).__name__}; leave it out, or give default_hooks.checkpoint.format='file'."
        )

    return tensors, plain(state)


def join(plain: Any, tensors: Mapping[str, Tensor]) -> Any:
    """Put the tensors back, see :func:`split_tensors`. A lazy mapping reads what ``plain`` names.

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
            for way in tensor_names(item):
                yield (str(key), *way)


def to_text(plain: Any) -> str:
    """The JSON of what :func:`split_tensors` left."""
    return json.dumps(plain, indent=1, allow_nan=False) + '\n'
