"""Unpack the weights of a checkpoint: from wrappers and stacks to one tensor for each of ours."""

import re
from collections.abc import Mapping

from torch import Tensor

from vit_plugin.errors import ConfigError

from .files import LazyArrays, checked


def prepared(weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    """Remove wrappers and stacks from a checkpoint's weights, and check every tensor.

    Raises:
        ConfigError: if a name is not a string, or a value is not a dense tensor of plain numbers.
    """
    return unstacked(without_absent(unwrapped(checked(weights))))


REGISTERS = 'register_tokens'
PARALLEL = re.compile(r'(^|\.)module\.')  # a word of DataParallel and DDP
WRAPPERS = re.compile(r'_(orig_mod|checkpoint_wrapped_module|fsdp_wrapped_module)\.')


def unwrapped(weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    """Remove torch's wrapper words from names: those of compiled parts, and what all have."""
    inside = {WRAPPERS.sub('', key): key for key in weights}
    while inside and all(map(PARALLEL.search, inside)):
        inside = {PARALLEL.sub(r'\1', key, count=1): whole for key, whole in inside.items()}
    if len(inside) < len(weights) or [*inside] == [*weights]:
        return weights
    return LazyArrays([*inside], lambda name: weights[inside[name]])


def without_absent(weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    """Leave out empty registers: transformers saves a (1, 0, C) array for a DINOv3 without any."""
    names = [key for key in weights if not (key.endswith(REGISTERS) and not weights[key].numel())]
    return weights if len(names) == len(weights) else LazyArrays(names, weights.__getitem__)


def unstacked(weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    """Split big_vision's scanned ``encoderblock`` arrays (blocks, ...) into single blocks."""
    scanned = [key for key in weights if '/encoderblock/' in key]
    if not scanned:
        return weights
    if len({weights[key].shape[:1] for key in scanned}) > 1 or not all(
        weights[key].numel() for key in scanned
    ):
        raise ConfigError(
            f'The checkpoint has blocks of several numbers in {scanned[0]} and the like: it is '
            'damaged.'
        )
    blocks = {
        key.replace('/encoderblock/', f'/encoderblock_{i}/'): (key, i)
        for key in scanned
        for i in range(weights[scanned[0]].shape[0])
    }
    names = [*(key for key in weights if key not in scanned), *blocks]

    def read(name: str) -> Tensor:
        if name not in blocks:
            return weights[name]
        key, i = blocks[name]
        return weights[key][i]

    return LazyArrays(names, read)
