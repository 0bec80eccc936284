"""Padding of maps: to complete patches, to multiples of a stride, or to a size."""

from collections.abc import Callable, Sequence
from typing import Literal

import torch.nn.functional as F
from torch import Tensor

from ..layers.std_conv import has_dynamic_size

Padding = Literal['same', 'valid']
# Padding -> number of patches along a side, from the sizes of the map and of a patch.
PADDINGS: dict[str, Callable[[int, int], int]] = {
    'same': lambda size, patch: -(-size // patch),
    'valid': lambda size, patch: size // patch,
}


def pad_to_multiple(x: Tensor, size: int) -> Tensor:
    """Pad a map (B, C, H, W) with zeros at the right and bottom to multiples of ``size``."""
    return pad_to(x, [side + -side % size for side in x.shape[2:]])


def pad_to(x: Tensor, size: Sequence[int]) -> Tensor:
    """Pad a map (B, C, H, W) with zeros at the right and bottom to this height and width."""
    bottom, right = size[0] - x.shape[2], size[1] - x.shape[3]
    return F.pad(x, (0, right, 0, bottom)) if has_dynamic_size(x) or right or bottom else x
