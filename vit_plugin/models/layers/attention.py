"""Multi-head self-attention: global or in windows, with optional decomposed relative positions."""

from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from .derived import Derives
from .linear import apply_linear, is_plain, linear
from .numerics import build_norm
from .pos_embed import relative_table

# How many elements of the bias of relative positions are made at a time: few enough for a CPU's cache, and enough to
# keep a GPU busy.
PART_ELEMENTS = {'cpu': 2**22, 'cuda': 2**26}
# How many the backward pass may find kept (256 MB in float32). More are made anew, so that memory does not grow with
# the square of the tokens.
KEPT_ELEMENTS = 2**26


class Attention(Derives):
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
        """The authors' initialisation, who have three layers for query, key and value; relative positions are zero."""
        for weight in (*self.qkv.weight.chunk(3), self.proj.weight):
            nn.init.xavier_uniform_(weight)
        for bias in (self.qkv.bias, self.proj.bias):
            if bias is not None:
                nn.init.zeros_(bias)
        for table in (self.rel_pos_h, self.rel_pos_w):
            if table is not None:
                nn.init.zeros_(table)

    def forward(self, x: Tensor, grid: tuple[int, int], num_queries: int | None = None) -> Tensor:
        """Attention of all tokens, or of the first ``num_queries``, to all."""
        # Tables of relative positions take part even where only a class token asks, or DDP would miss their gradient.
        q, k, v = self.project(x, num_queries if self.rel_pos_h is None else None)
        return self.output(self._attend(q, k, v, grid, self.current_drop_rate)[:, :, :num_queries])

    def weights(self, x: Tensor, grid: tuple[int, int]) -> Tensor:
        """The attention weights (B, heads, N, N) of every query (rows) over every key (columns), without dropout.

        Args:
            x: what :meth:`forward` takes: in a block, ``block.norm1`` of its tokens.
            grid: see :class:`Attention`.

        They are the output of the same attention when the values are the unit vectors.
        """
        q, k, _ = self.project(x)
        unit = torch.eye(x.shape[1], dtype=q.dtype, device=q.device)  # (N, N)
        return self._attend(q, k, unit.expand(*q.shape[:2], -1, -1), grid, drop_rate=0.)

    @property
    def current_drop_rate(self) -> float:
        """Dropout of the attention weights in the present mode."""
        return self.attn_drop_rate if self.training else 0.

    def project(self, x: Tensor, num_queries: int | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Tokens (B, N, embed_dims) -> queries of the first so many, keys and values, each (B, heads, N, head_dims)."""
        layer, width = self.qkv, x.shape[-1]
        if num_queries is None or not is_plain(layer, nn.Linear):
            q, k, v = apply_linear(layer, x).unflatten(-1, (3, self.num_heads, -1)).permute(2, 0, 3, 1, 4)
            q = q[:, :, :num_queries]
        else:
            bias = (None, None) if layer.bias is None else layer.bias.split((width, 2 * width))
            weight = layer.weight.split((width, 2 * width))
            q = linear(x[:, :num_queries], weight[0], bias[0]).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            k, v = linear(x, weight[1], bias[1]).unflatten(-1, (2, self.num_heads, -1)).permute(2, 0, 3, 1, 4)
        return self.q_norm(q), self.k_norm(k), v

    def output(self, x: Tensor) -> Tensor:
        """What attention gave in each head, (B, heads, N, head_dims) -> (B, N, embed_dims)."""
        return self.drop(apply_linear(self.proj, x.transpose(1, 2).flatten(2)))

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, grid: tuple[int, int], drop_rate: float) -> Tensor:
        h, w = grid
        prefix = k.shape[2] - h * w  # tokens before the patches, which have no position
        if self.rel_pos_h is None:
            return F.scaled_dot_product_attention(q, k, v, dropout_p=drop_rate)
        rows, columns = (
            self.derived(lambda table=table, size=size: relative_table(table, size), table, key=(name, size))
            for name, table, size in (('h', self.rel_pos_h, h), ('w', self.rel_pos_w, w)))  # (h, h, d), (w, w, d)
        row = w * k[..., 0].numel()  # elements of the bias of one row of queries
        step = min(h, max(1, PART_ELEMENTS.get(q.device.type, PART_ELEMENTS['cuda']) // row))
        recomputed = torch.is_grad_enabled() and h * row > KEPT_ELEMENTS
        parts = [F.scaled_dot_product_attention(q[:, :, :prefix], k, v, dropout_p=drop_rate)] if prefix else []
        for y in range(0, h, step):
            args = (q[:, :, prefix + y * w:prefix + (y + step) * w], k, v, rows[y:y + step], columns, drop_rate)
            if recomputed:
                parts.append(checkpoint(attend_with_positions, *args, use_reentrant=False))
            else:
                parts.append(attend_with_positions(*args))
        return torch.cat(parts, dim=2) if len(parts) > 1 else parts[0]


def attend_with_positions(q: Tensor, k: Tensor, v: Tensor, rows: Tensor, columns: Tensor, drop_rate: float) -> Tensor:
    """Attention of some rows of patches to all tokens, with the bias of their relative positions.

    The bias of query i and key j is q_i . R_h[y_i - y_j] + q_i . R_w[x_i - x_j].

    Args:
        q: queries (B, heads, y*w, d) of y rows of patches.
        k, v: keys and values (B, heads, prefix + h*w, d).
        rows, columns: R_h for those rows, (y, h, d), and R_w, (w, w, d).
        drop_rate: dropout of the attention weights.

    Shape of the result: (B, heads, y*w, d).
    """
    patches = q.unflatten(2, (len(rows), len(columns)))  # (B, heads, y, w, d)
    bias_h = torch.einsum('bnyxd,yrd->bnyxr', patches, rows)
    bias_w = torch.einsum('bnyxd,xcd->bnyxc', patches, columns)
    bias = (bias_h[..., None] + bias_w[..., None, :]).flatten(-2).flatten(2, 3)  # (B, heads, y*w, h*w)
    prefix = k.shape[2] - bias.shape[-1]
    bias = F.pad(bias, (prefix, 0)) if prefix else bias
    return F.scaled_dot_product_attention(q, k, v, attn_mask=bias, dropout_p=drop_rate)


class WindowAttention(Attention):
    """Attention within square windows (arXiv:2203.16527, Section 3, "Backbone adaptation").

    As in ViTDet, whose weights expect it, a grid that the window does not divide is padded at the right and bottom with
    zero tokens, which are keys like the others.

    Args:
        window_size: side of the windows in patches.
        The rest: see :class:`Attention`.

    Shape: patches (B, h*w, embed_dims) of ``grid`` and no other tokens -> the same.
    """

    def __init__(self, window_size: int, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.window_size = window_size

    def forward(self, x: Tensor, grid: tuple[int, int], num_queries: int | None = None) -> Tensor:
        windows = to_windows(x, grid, self.window_size)  # (B * windows, size*size, embed_dims)
        windows = super().forward(windows, (self.window_size, self.window_size))
        return from_windows(windows, grid, self.window_size)[:, :num_queries]

    def weights(self, x: Tensor, grid: tuple[int, int]) -> Tensor:
        """The attention weights (B * windows, heads, size*size, size*size) of every window, in raster order."""
        windows = to_windows(x, grid, self.window_size)
        return super().weights(windows, (self.window_size, self.window_size))


def to_windows(x: Tensor, grid: tuple[int, int], size: int) -> Tensor:
    """Patches (B, h*w, C) -> those of each window (B * ceil(h/size) * ceil(w/size), size*size, C), padded by zeros."""
    h, w = grid
    x = F.pad(x.unflatten(1, grid), (0, 0, 0, -w % size, 0, -h % size))
    x = x.unflatten(2, (-1, size)).unflatten(1, (-1, size))  # (B, rows, size, columns, size, C)
    return x.transpose(2, 3).flatten(3, 4).flatten(0, 2)


def from_windows(x: Tensor, grid: tuple[int, int], size: int) -> Tensor:
    """The inverse of :func:`to_windows`, without the padding."""
    h, w = grid
    x = x.unflatten(1, (size, size)).unflatten(0, (-1, -(-h // size), -(-w // size)))
    x = x.transpose(2, 3).flatten(3, 4).flatten(1, 2)  # (B, rows*size, columns*size, C)
    return x[:, :h, :w].flatten(1, 2)
