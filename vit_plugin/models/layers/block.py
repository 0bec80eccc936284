"""The encoder's block."""

from typing import Any

from timm.layers import DropPath
from torch import Tensor, nn

from .attention import Attention
from .mlp import Mlp
from .numerics import Numerics, build_norm


class TransformerBlock(nn.Module):
    """A pre-norm transformer encoder block (arXiv:2010.11929, Equations 2 and 3).

    Args:
        embed_dims, num_heads, feedforward_channels: see :class:`~vit_plugin.arch.Size`.
        numerics: activation and norm.
        drop_rate: dropout after attention and after both layers of the MLP.
        drop_path_rate: probability of skipping each residual branch (arXiv:1603.09382).
        qkv_bias, attn_drop_rate, rel_pos_grid: see :class:`Attention`.

    Shape: tokens (B, N, embed_dims) -> the same.
    """

    def __init__(self, embed_dims: int, num_heads: int, feedforward_channels: int, numerics: Numerics,
                 drop_rate: float = 0., drop_path_rate: float = 0., **attention: Any) -> None:
        super().__init__()
        self.norm1 = build_norm(numerics.norm_cfg, embed_dims)
        self.attn = Attention(embed_dims, num_heads, drop_rate=drop_rate, **attention)
        self.norm2 = build_norm(numerics.norm_cfg, embed_dims)
        self.mlp = Mlp(embed_dims, feedforward_channels, numerics.act_cfg, drop_rate)
        self.drop_path = DropPath(drop_path_rate)

    def forward(self, x: Tensor, grid: tuple[int, int]) -> Tensor:
        x = x + self.drop_path(self.attn(self.norm1(x), grid))  # Eq. 2
        return x + self.drop_path(self.mlp(self.norm2(x)))  # Eq. 3
