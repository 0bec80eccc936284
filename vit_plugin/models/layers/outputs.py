"""Convert the last tokens to the outputs of a backbone (arXiv:2010.11929, Equation 4)."""

from collections.abc import Callable, Sequence
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from vit_plugin.errors import ConfigError

from .block_cfg import Grid


def to_map(x: Tensor, prefix: int, grid: Grid) -> Tensor:
    """Tokens (B, prefix + h*w, C) -> the map (B, C, h, w) of the patches."""
    return x[:, prefix:].transpose(1, 2).unflatten(2, grid).contiguous()


def to_map_and_class(x: Tensor, prefix: int, grid: Grid) -> Tensor:
    """The map (B, 2 * C, h, w) of the patches, with the class token appended to each."""
    class_token = x[:, 0, :, None, None].expand(-1, -1, *grid)
    return torch.cat((to_map(x, prefix, grid), class_token), dim=1)


OutType = Literal['raw', 'cls_token', 'avg_featmap', 'featmap', 'pyramid', 'pyramid_cls']
# Output type -> function of the normed tokens x (B, prefix + h*w, C). All but the pyramids are as
# in MMPretrain.
OUT_TYPES: dict[str, Callable[[Tensor, int, Grid], Tensor]] = {
    'raw': lambda x, prefix, grid: x,
    'cls_token': lambda x, prefix, grid: x[:, 0],  # (B, C)
    'avg_featmap': lambda x, prefix, grid: x[:, prefix:].mean(dim=1),  # (B, C)
    'featmap': to_map,
    'pyramid': to_map,
    'pyramid_cls': to_map_and_class,
}
MAP_OUT_TYPES = ('featmap', 'pyramid', 'pyramid_cls')  # output types that are maps
CLASS_TOKEN_OUT_TYPES = ('cls_token', 'pyramid_cls')  # output types with the class token


def check_out_type(out_type: str, prefix_tokens: Sequence[str]) -> None:
    """Raise a ``ConfigError`` if the output needs a class token and there is none."""
    if out_type in CLASS_TOKEN_OUT_TYPES and 'cls_token' not in prefix_tokens:
        raise ConfigError(
            f'with_cls_token must be True when out_type={out_type!r}; without a class token '
            "choose out_type='avg_featmap', or 'featmap' or 'pyramid' for a detector."
        )


def read_out_indices(out_indices: int | Sequence[int], num_layers: int) -> tuple[int, ...]:
    """The blocks of the outputs in ascending order, from one or several that may be negative.

    Raises:
        ConfigError: if there is no such block.
    """
    indices = [out_indices] if isinstance(out_indices, int) else out_indices
    if not num_layers and tuple(indices) == (-1,):
        return (-1,)  # the stem's tokens with positions
    for index in indices:
        if not -num_layers <= index < num_layers:
            raise ConfigError(
                f'Invalid out_indices {index}: this arch has {num_layers} blocks, '
                f'{-num_layers} to {num_layers - 1}.'
            )
    return tuple(sorted({index % num_layers for index in indices}))


def resample(x: Tensor, stride: int, new_stride: int, shape: torch.Size) -> Tensor:
    """Resample a map (B, C, h, w) to another stride, keeping its elements at their image positions.

    Args:
        x: the map.
        stride: pixels per element of the map.
        new_stride: pixels per element of the result.
        shape: shape of the result. If the map is too small for it, its last elements are repeated.
    """
    height, width = (-(-side * new_stride // stride) for side in shape[2:])
    bottom, right = max(height - x.shape[2], 0), max(width - x.shape[3], 0)
    x = F.pad(x, (0, right, 0, bottom), mode='replicate') if right or bottom else x
    x = F.interpolate(x, scale_factor=stride / new_stride, mode='bilinear', align_corners=False)
    return x[:, :, : shape[2], : shape[3]]
