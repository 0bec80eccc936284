"""Attention by its formula, to compare our layers with."""

import torch

from vit_plugin.models.layers import Attention, BlockCfg


def block_cfg(embed_dims: int, num_heads: int, **options) -> BlockCfg:
    """The config of a block whose MLP has twice its width."""
    return BlockCfg(
        embed_dims=embed_dims, num_heads=num_heads, feedforward_channels=2 * embed_dims, **options
    )


def reference(
    layer: Attention, x: torch.Tensor, grid: tuple[int, int]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Output (B, N, C) and attention weights (B, heads, N, N) by the formula.

    The relative position bias of ViTDet is added pair by pair.
    """
    b, n, c = x.shape
    heads, dims = layer.num_heads, c // layer.num_heads
    q, k, v = (t.reshape(b, n, heads, dims).transpose(1, 2) for t in layer.qkv(x).chunk(3, dim=-1))
    logits = q @ k.transpose(-2, -1) / dims**0.5
    if hasattr(layer, 'rel_pos_h'):
        (h, w), prefix = grid, n - grid[0] * grid[1]
        for i in range(h * w):
            for j in range(h * w):
                query = q[:, :, prefix + i]
                logits[:, :, prefix + i, prefix + j] += (
                    query @ layer.rel_pos_h[i // w - j // w + h - 1]
                    + query @ layer.rel_pos_w[i % w - j % w + w - 1]
                )
    weights = logits.softmax(-1)
    return layer.proj((weights @ v).transpose(1, 2).reshape(b, n, c)), weights
