"""Multi-head self-attention over all tokens."""

from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .numerics import build_norm
from .qkv import QkvBias, build_qkv

Grid = tuple[int, int]


class Attention(nn.Module):
    """Multi-head self-attention through torch's fused kernel (arXiv:2010.11929, Appendix A).

    Args:
        embed_dims: width of the tokens.
        num_heads: number of heads; must divide the width.
        qkv_bias: whether query, key and value have a bias. ``'qv'`` gives none to the key.
        attn_drop_rate: dropout of the attention weights.
        drop_rate: dropout of the output.
        qk_norm_cfg: norm of queries and keys in each head (arXiv:2302.05442, Section 2); None for no norm.
        norm_cfg: norm of the attended values before the output projection (sub-LN, arXiv:2210.06423); None for no norm.
        proj_bias: whether the output projection has a bias.
        num_kv_heads: number of heads of keys and values, which groups of queries share. None means ``num_heads``.

    Shape: tokens (B, N, embed_dims) -> tokens of the same shape. The last h*w tokens are the patches of ``grid``.
    """

    def __init__(self, embed_dims: int, num_heads: int, qkv_bias: QkvBias = True, attn_drop_rate: float = 0.,
                 drop_rate: float = 0., qk_norm_cfg: Mapping[str, Any] | None = None,
                 norm_cfg: Mapping[str, Any] | None = None, proj_bias: bool = True,
                 num_kv_heads: int | None = None) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.head_dims = embed_dims // num_heads
        self.attn_drop_rate = attn_drop_rate
        self.qkv = build_qkv(embed_dims, num_heads, qkv_bias, num_kv_heads)
        self.q_norm, self.k_norm = (
            build_norm(qk_norm_cfg, self.head_dims) if qk_norm_cfg else nn.Identity() for _ in range(2))
        self.norm = build_norm(norm_cfg, embed_dims) if norm_cfg else nn.Identity()
        self.proj = nn.Linear(embed_dims, embed_dims, bias=proj_bias)
        self.drop = nn.Dropout(drop_rate)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialise as the authors do. They have separate layers for query, key and value."""
        num_queries, num_others = self.proj.in_features, (self.qkv.weight.shape[0] - self.proj.in_features) // 2
        for weight in (*self.qkv.weight.split((num_queries, num_others, num_others)), self.proj.weight):
            nn.init.xavier_uniform_(weight)
        for bias in (self.qkv.bias, self.proj.bias):
            if bias is not None:
                nn.init.zeros_(bias)

    def forward(self, x: Tensor, grid: Grid, num_queries: int | None = None, rotation: Tensor | None = None) -> Tensor:
        """Tokens (B, N, embed_dims) -> the same. With ``num_queries``, only the first tokens are computed.

        ``rotation`` is for :class:`~vit_plugin.models.layers.rotary_attention.RotaryAttention`.
        """
        q, k, v = self.project(x, rotation)  # (B, heads, N, head_dims) each
        return self.output(self.attend(q[:, :, :num_queries], k, v, grid, self.current_drop_rate))

    def weights(self, x: Tensor, grid: Grid, rotation: Tensor | None = None) -> Tensor:
        """The attention weights (B, heads, N, N) of every query (rows) over every key (columns), without dropout.

        Args:
            x: the input of :meth:`forward`. In a block this is ``block.norm1`` of the tokens.
            grid: see :class:`Attention`.
            rotation: see :meth:`forward`.
        """
        q, k, _ = self.project(x, rotation)
        # With unit vectors as values, the output of attention is its weights.
        unit = torch.eye(x.shape[1], dtype=q.dtype, device=q.device)  # (N, N)
        return self.attend(q, k, unit.expand(*q.shape[:2], -1, -1), grid, drop_rate=0.)

    @property
    def current_drop_rate(self) -> float:
        """Dropout of the attention weights in the current mode, training or eval."""
        return self.attn_drop_rate if self.training else 0.

    def project(self, x: Tensor, rotation: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Tokens (B, N, embed_dims) -> queries, keys and values, each (B, heads, N, head_dims)."""
        q, k, v = self.qkv(x).unflatten(-1, (3, self.num_heads, -1)).permute(2, 0, 3, 1, 4)
        return self.q_norm(q), self.k_norm(k), v

    def attend(self, q: Tensor, k: Tensor, v: Tensor, grid: Grid, drop_rate: float) -> Tensor:
        """Queries (B, heads, M, d), keys and values (B, heads, N, d) -> attended values (B, heads, M, d)."""
        return F.scaled_dot_product_attention(q, k, v, dropout_p=drop_rate)

    def output(self, x: Tensor) -> Tensor:
        """Attended values (B, heads, N, head_dims) -> tokens (B, N, embed_dims)."""
        return self.drop(self.proj(self.norm(x.transpose(1, 2).flatten(2))))
