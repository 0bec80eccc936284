"""The encoder's block."""

from functools import partial
from typing import Any

import torch
from timm.layers import DropPath
from torch import Tensor, nn

from .attention import Attention, WindowAttention
from .mlp import Mlp
from .numerics import Numerics, build_norm


class LayerScale(nn.Module):
    """A learned factor for each channel of a residual branch (arXiv:2103.17239, Section 2)."""

    def __init__(self, embed_dims: int, value: float) -> None:
        super().__init__()
        self.value = value
        self.gamma = nn.Parameter(torch.empty(embed_dims))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.constant_(self.gamma, self.value)

    def forward(self, x: Tensor) -> Tensor:
        return x * self.gamma


class TransformerBlock(nn.Module):
    """A pre-norm transformer encoder block (arXiv:2010.11929, Equations 2 and 3).

    Args:
        embed_dims, num_heads, feedforward_channels: see :class:`~vit_plugin.arch.Size`.
        numerics: activation and norm.
        drop_rate: dropout after attention and after both layers of the MLP.
        drop_path_rate: probability of skipping each residual branch (arXiv:1603.09382).
        layer_scale_init_value: where the factors of :class:`LayerScale` start; 0 for no LayerScale.
        gated_mlp: see :class:`Mlp`.
        qk_norm: norm queries and keys in each head.
        window_size: side of the windows of attention in patches; None for global attention.
        qkv_bias, attn_drop_rate, rel_pos_grid: see :class:`Attention`.

    Shape: tokens (B, N, embed_dims) -> the same, or of the first ``num_outputs`` tokens only.
    """

    def __init__(self, embed_dims: int, num_heads: int, feedforward_channels: int, numerics: Numerics,
                 drop_rate: float = 0., drop_path_rate: float = 0., layer_scale_init_value: float = 0.,
                 gated_mlp: bool = False, qk_norm: bool = False, window_size: int | None = None,
                 **attention: Any) -> None:
        super().__init__()
        self.norm1 = build_norm(numerics.norm_cfg, embed_dims)
        self.attn = (partial(WindowAttention, window_size) if window_size else Attention)(
            embed_dims, num_heads, drop_rate=drop_rate, qk_norm_cfg=numerics.norm_cfg if qk_norm else None, **attention)
        self.norm2 = build_norm(numerics.norm_cfg, embed_dims)
        self.mlp = Mlp(embed_dims, feedforward_channels, numerics.act_cfg, drop_rate, gated_mlp)
        self.ls1, self.ls2 = (
            LayerScale(embed_dims, layer_scale_init_value) if layer_scale_init_value else nn.Identity()
            for _ in range(2))
        self.drop_path = DropPath(drop_path_rate)

    def forward(self, x: Tensor, grid: tuple[int, int], num_outputs: int | None = None) -> Tensor:
        x = x[:, :num_outputs] + self.drop_path(self.ls1(self.attn(self.norm1(x), grid, num_outputs)))  # Eq. 2
        return x + self.drop_path(self.ls2(self.mlp(self.norm2(x))))  # Eq. 3
