"""The row of blocks that a backbone's arguments ask for."""

from collections.abc import Mapping
from typing import Any

from torch import nn

from vit_plugin.arch import Arch
from vit_plugin.errors import ConfigError

from .block import TransformerBlock
from .token_merging import MergingBlock


def build_blocks(sizes: Arch, num_built: int, num_extra_tokens: int, window: Mapping[str, Any] | None,
                 block_cfg: Mapping[str, Any], rel_pos_grid: tuple[int, int] | None, drop_path_rate: float,
                 **common: Any) -> nn.ModuleList:
    """The first blocks of an arch.

    Args:
        sizes: the arch.
        num_built: how many of its blocks are built.
        num_extra_tokens: tokens before the patches.
        window, block_cfg: see :class:`~vit_plugin.models.VisionTransformer`.
        rel_pos_grid: native grid (h, w) of relative positions in global blocks; None for none in any block.
        drop_path_rate: of the last block of the arch, growing linearly from 0 at the first.
        **common: arguments of every block.

    Raises:
        ConfigError: for windows that cannot be, a list of another length than the arch has blocks, or merging of
            tokens with what needs their grid.
    """
    window_sizes = _window_sizes(window, sizes.num_layers, num_extra_tokens)
    block_cfgs = _block_cfgs(block_cfg, sizes.num_layers)
    merging = any(cfg.get('num_merged') for cfg in block_cfgs)
    if merging and (rel_pos_grid or window):
        raise ConfigError('block_cfg: num_merged leaves no grid of patches, which window and relative positions '
                          'need; take one or the other.')
    blocks = nn.ModuleList()
    for i in range(num_built):
        cfg, size = block_cfgs[i], window_sizes[i]
        num_merged = cfg.pop('num_merged', 0)
        kind, merge = (MergingBlock, dict(num_merged=num_merged, num_extra_tokens=num_extra_tokens)) if merging else (
            TransformerBlock, {})
        blocks.append(kind(
            sizes.embed_dims, sizes.num_heads, sizes.feedforward_channels, **common, **merge, window_size=size,
            drop_path_rate=drop_path_rate * i / max(sizes.num_layers - 1, 1),
            rel_pos_grid=(size, size) if size and rel_pos_grid else rel_pos_grid, **cfg))
    return blocks


def _block_cfgs(block_cfg: Mapping[str, Any], num_layers: int) -> list[dict[str, Any]]:
    """The further arguments of each block: a list has one for each."""
    for name, value in block_cfg.items():
        if isinstance(value, (list, tuple)) and len(value) != num_layers:
            raise ConfigError(f'block_cfg: {name} has {len(value)} values for {num_layers} blocks; give one for each, '
                              'or one for all.')
    return [{name: value[i] if isinstance(value, (list, tuple)) else value for name, value in block_cfg.items()}
            for i in range(num_layers)]


def _window_sizes(window: Mapping[str, Any] | None, num_layers: int, num_extra_tokens: int) -> list[int | None]:
    """The window of each block, None where attention is global."""
    if window is None:
        return [None] * num_layers
    cfg = {'global_blocks': (), **window}
    size, global_blocks = cfg.get('size'), cfg['global_blocks']
    in_range = all(isinstance(i, int) and -num_layers <= i < num_layers for i in global_blocks)
    if set(cfg) != {'size', 'global_blocks'} or not isinstance(size, int) or size < 1 or not in_range:
        raise ConfigError(f'window={dict(window)} must be dict(size=..., global_blocks=(...)): a positive whole '
                          f'number, and some of the blocks {-num_layers} to {num_layers - 1}.')
    if num_extra_tokens:
        raise ConfigError('window: an extra token is in no window; set with_cls_token=False and leave out '
                          'extra_tokens.')
    global_blocks = {i % num_layers for i in global_blocks}
    return [None if i in global_blocks else size for i in range(num_layers)]
