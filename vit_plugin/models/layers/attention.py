"""Multi-head self-attention, with an optional decomposed relative-position bias."""

from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .numerics import build_norm
from .pos_embed import grid_one_hots, relative_table


class Attention(nn.Module):
    """Multi-head self-attention through torch's fused kernel (arXiv:2010.11929, Appendix A).

    Args:
        embed_dims: width of the tokens.
        num_heads: number of heads; must divide the width.
        qkv_bias: whether query, key and value have a bias.
        attn_drop_rate: dropout of the attention weights.
        drop_rate: dropout of the output.
        qk_norm_cfg: norm of queries and keys in each head (arXiv:2302.05442, Section 2); None for none.
        rel_pos_grid: the native grid (h, w) of a learned relative-position bias, decomposed into
            rows and columns (arXiv:2112.01526, Equation 4); None for attention without it.

    Shape: tokens (B, N, embed_dims), of which the last h*w are the patches of ``grid`` -> the same.
    """

    def __init__(self, embed_dims: int, num_heads: int, qkv_bias: bool = True, attn_drop_rate: float = 0.,
                 drop_rate: float = 0., qk_norm_cfg: Mapping[str, Any] | None = None,
                 rel_pos_grid: tuple[int, int] | None = None) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.head_dims = embed_dims // num_heads
        self.attn_drop_rate = attn_drop_rate
        self.qkv = nn.Linear(embed_dims, 3 * embed_dims, bias=qkv_bias)
        self.q_norm, self.k_norm = (
            build_norm(qk_norm_cfg, self.head_dims) if qk_norm_cfg else nn.Identity() for _ in range(2))
        self.proj = nn.Linear(embed_dims, embed_dims)
        self.drop = nn.Dropout(drop_rate)
        self.rel_pos_h = self.rel_pos_w = None
        if rel_pos_grid is not None:
            self.rel_pos_h, self.rel_pos_w = (
                nn.Parameter(torch.zeros(2 * size - 1, self.head_dims)) for size in rel_pos_grid)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """The authors' initialisation; query, key and value are three layers to them."""
        for weight in (*self.qkv.weight.chunk(3), self.proj.weight):
            nn.init.xavier_uniform_(weight)
        for bias in (self.qkv.bias, self.proj.bias):
            if bias is not None:
                nn.init.zeros_(bias)
        for table in (self.rel_pos_h, self.rel_pos_w):
            if table is not None:
                nn.init.trunc_normal_(table, std=0.02)

    def forward(self, x: Tensor, grid: tuple[int, int]) -> Tensor:
        q, k, v = self._project(x)  # 3 times (B, heads, N, head_dims)
        drop_rate = self.attn_drop_rate if self.training else 0.
        x = self._attend(q, k, v, grid, drop_rate)  # (B, heads, N, head_dims)
        return self.drop(self.proj(x.transpose(1, 2).flatten(2)))  # (B, N, embed_dims)

    def weights(self, x: Tensor, grid: tuple[int, int]) -> Tensor:
        """The attention weights (B, heads, N, N) of every query (rows) over every key (columns), without dropout.

        Args:
            x: what :meth:`forward` takes: in a block, ``block.norm1`` of its tokens.
            grid: see :class:`Attention`.

        They are the output of the same attention when the values are the unit vectors.
        """
        q, k, _ = self._project(x)
        unit = torch.eye(x.shape[1], dtype=q.dtype, device=q.device)  # (N, N)
        return self._attend(q, k, unit.expand(*q.shape[:2], -1, -1), grid, drop_rate=0.)

    def _project(self, x: Tensor) -> tuple[Tensor, ...]:
        q, k, v = self.qkv(x).unflatten(-1, (3, self.num_heads, self.head_dims)).permute(2, 0, 3, 1, 4)
        return self.q_norm(q), self.k_norm(k), v

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, grid: tuple[int, int], drop_rate: float) -> Tensor:
        scale = self.head_dims ** -0.5
        if self.rel_pos_h is not None:
            q, k, scale = *self._join_relative_positions(q, k, scale, grid), 1.
        width = v.shape[-1]
        # Fused kernels want queries, keys and values of one width.
        missing = q.shape[-1] - width
        if missing > 0:
            v = F.pad(v, (0, missing))
        elif missing < 0:
            q, k = F.pad(q, (0, -missing)), F.pad(k, (0, -missing))
        x = F.scaled_dot_product_attention(q, k, v, dropout_p=drop_rate, scale=scale)
        return x[..., :width]

    def _join_relative_positions(self, q: Tensor, k: Tensor, scale: float,
                                 grid: tuple[int, int]) -> tuple[Tensor, Tensor]:
        """Queries and keys whose plain product is the logits with the relative-position bias.

        The bias of query i and key j is q_i . R_h[y_i - y_j] + q_i . R_w[x_i - x_j]. Its two terms join
        the query as h + w more elements, and the key as the one-hot codes of its row and column, so
        that no N x N bias is ever held. Tokens before the patches have neither.
        """
        h, w = grid
        prefix = q.shape[2] - h * w
        patches = q[:, :, prefix:].unflatten(2, grid)  # (B, heads, h, w, d)
        rows = torch.einsum('bnyxd,yrd->bnyxr', patches, relative_table(self.rel_pos_h, h))
        columns = torch.einsum('bnyxd,xcd->bnyxc', patches, relative_table(self.rel_pos_w, w))
        bias = torch.cat((rows, columns), dim=-1).flatten(2, 3)  # (B, heads, h*w, h + w)
        codes = grid_one_hots(grid, k)  # (h*w, h + w)
        return (torch.cat((q * scale, F.pad(bias, (0, 0, prefix, 0))), dim=-1),
                torch.cat((k, F.pad(codes, (0, 0, prefix, 0)).expand(*k.shape[:2], -1, -1)), dim=-1))
