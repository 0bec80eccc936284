"""Find the tensors in what a training script saved, and check that they are usable."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from mmengine.logging import print_log
from torch import Tensor, nn

from vit_plugin.errors import ConfigError

from .lazy import Lazy, Weights

# Keys under which training scripts save the weights. EMA weights come first, since they are the
# weights that were tested.
EMA_CONTAINERS = ('state_dict_ema', 'model_ema', 'ema')
CONTAINERS = (*EMA_CONTAINERS, 'state_dict', 'model', 'module', 'teacher', 'model_state_dict')


def find_tensors(content: Any) -> tuple[Weights, Any]:
    """Find the tensors in a training checkpoint.

    They are in the first of ``CONTAINERS``, which may have containers in turn. Without one, they
    are the tensors of the checkpoint itself.

    Returns:
        The tensors, and the ``meta`` next to their container, or None. Arrays become tensors.

    Raises:
        ConfigError: if there are no tensors, or if :func:`checked_weights` rejects one.
    """
    visited, meta = set(), None
    while isinstance(content, Mapping) and id(content) not in visited:
        visited.add(id(content))  # a damaged file may contain itself
        if isinstance(content, Lazy):
            return content, meta
        names = [name for name in CONTAINERS if isinstance(content.get(name), Mapping)]
        names = [name for name in names if content[name]] or names  # a trainer may leave one empty
        if len(names) > 1 and names[0] in EMA_CONTAINERS:
            print_log(
                f'The checkpoint has weights in {" and ".join(names)}: the EMA weights in '
                f'{names[0]} are used.',
                'current',
            )
        if not names:
            weights = {
                name: from_numpy(name, value) if isinstance(value, np.ndarray) else value
                for name, value in content.items()
                if isinstance(value, (Tensor, np.ndarray))
            }
            if weights:
                return checked_weights(weights), meta
            break
        content, meta = content[names[0]], content.get('meta', meta)
    raise ConfigError(
        'The checkpoint holds no weights: neither named tensors nor any of the containers '
        f'{", ".join(CONTAINERS)}.'
    )


def checked_weights(weights: Weights) -> Weights:
    """Check the weights and return them. Tensors that are not read yet are checked on access.

    Raises:
        ConfigError: if a name is not a string, or a value is not a complete, dense tensor of plain
            numbers.
    """
    if not isinstance(weights, Lazy):
        for name, value in weights.items():
            if wrong := _what_is_wrong(name, value):
                raise ConfigError(f'The checkpoint cannot be used: {name!r} is {wrong}.')
    return weights


def is_plain(value: Tensor) -> bool:
    """True if a tensor is dense, and has real numbers that are not quantized."""
    return value.layout == torch.strided and not (
        value.is_quantized or value.is_nested or value.is_complex()
    )


def _what_is_wrong(name: Any, value: Any) -> str:
    """Why an entry is not a usable tensor, or an empty text."""
    if not isinstance(name, str):
        return 'the name of a tensor, and not a string'
    if not isinstance(value, Tensor):
        return f'not a tensor, but of type {type(value).__name__}'
    if not is_plain(value):
        return 'sparse, quantized, nested or complex; save it as a plain tensor'
    if type(value) not in (Tensor, nn.Parameter):  # such as a slice, which checks its own content
        return ''
    if value.is_meta or value.untyped_storage().nbytes() < value.numel() * value.element_size():
        return f'of the shape {tuple(value.shape)} without content to fill it; save it contiguous'
    return ''


def from_numpy(name: Any, array: np.ndarray) -> Tensor:
    """An array as a tensor. Raises a ``ConfigError`` for numbers that torch does not have."""
    if array.dtype.kind not in 'fiub' or array.dtype.itemsize > 8:  # torch has no long double
        raise ConfigError(
            f'The checkpoint cannot be used: {name!r} is an array of {array.dtype}, and '
            'torch has no such numbers; save it as float32.'
        )
    native = array.dtype.newbyteorder('=')  # torch has no other byte order
    return torch.from_numpy(np.require(array, native, ('C', 'W')))
