"""Attention with learned relative positions, separate for rows and columns."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .attention import Attention
from .block_cfg import BlockCfg, Grid
from .recompute import recomputed

# Elements of the bias that are computed at a time: few enough for a CPU's cache, enough to keep a
# GPU busy.
PART_ELEMENTS = {'cpu': 2**22, 'cuda': 2**26}
# Elements that are saved for the backward pass (256 MiB in float32). A larger bias is recomputed
# there, so that memory does not grow with the square of the number of tokens.
SAVED_ELEMENTS = 2**26


class RelativeAttention(Attention):
    """Attention with a bias for the relative position of patches (arXiv:2112.01526, Equation 4).

    Args:
        cfg: its ``relative`` has the native grid (h, w) of the tables. For another grid they are
            resampled.

    Shape: see :class:`Attention`. Tokens before the patches have no position.
    """

    def __init__(self, cfg: BlockCfg) -> None:
        super().__init__(cfg)
        assert cfg.relative is not None  # see `build_attention`
        self.rel_pos_h, self.rel_pos_w = (
            nn.Parameter(torch.zeros(2 * size - 1, self.head_dims)) for size in cfg.relative.grid
        )

    def reset_parameters(self) -> None:
        super().reset_parameters()
        # The parameters are the two tables. The parent's constructor calls this before they exist.
        for table in self.parameters(recurse=False):
            nn.init.zeros_(table)

    def forward(
        self, x: Tensor, grid: Grid, num_queries: int | None = None, *args: Any, **kwargs: Any
    ) -> Tensor:
        # Compute all queries, so that the tables always have a gradient, as DDP requires.
        return super().forward(x, grid, None, *args, **kwargs)[:, :num_queries]

    def row_pairs(self, table: Tensor, size: int) -> Tensor:
        """The vectors for every pair of ``size`` rows, see :func:`relative_table`."""
        return relative_table(table, size)  # a method, so that `passes` can replace it

    def column_pairs(self, table: Tensor, size: int) -> Tensor:
        """The vectors for every pair of ``size`` columns."""
        return relative_table(table, size)

    def attend(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        grid: Grid,
        drop_rate: float,
        mask: Tensor | None = None,
        position_input: Tensor | None = None,
    ) -> Tensor:
        """See :meth:`Attention.attend`.

        The queries are those of all N tokens. A mask may only be of tokens before the patches.
        """
        h, w = grid
        prefix = k.shape[2] - h * w
        rows = self.row_pairs(self.rel_pos_h, h)  # (h, h, d)
        columns = self.column_pairs(self.rel_pos_w, w)  # (w, w, d)
        row_elements = w * k[..., 0].numel()  # elements of the bias for one row of queries
        # In an export, batch or grid may be dynamic, and the number of parts would depend on them.
        step = h
        if not isinstance(row_elements, torch.SymInt):
            part_elements = PART_ELEMENTS.get(q.device.type, PART_ELEMENTS['cuda'])
            step = min(h, max(1, part_elements // row_elements))
        is_large = step < h and torch.is_grad_enabled() and h * row_elements > SAVED_ELEMENTS
        parts = [super().attend(q[:, :, :prefix], k, v, grid, drop_rate, mask)] if prefix else []
        for y in range(0, h, step) if step < h else (0,):  # no range over a dynamic h
            args = (
                q[:, :, prefix + y * w : prefix + (y + step) * w],
                k,
                v,
                rows[y : y + step],
                columns,
                drop_rate,
            )
            parts.append(recomputed(is_large, attend_with_positions, *args))
        return torch.cat(parts, dim=2) if len(parts) > 1 else parts[0]


def attend_with_positions(
    q: Tensor, k: Tensor, v: Tensor, rows: Tensor, columns: Tensor, drop_rate: float
) -> Tensor:
    """Attention from some rows of patches to all tokens, with the bias of the relative positions.

    The bias of query i and key j is q_i . R_h[y_i - y_j] + q_i . R_w[x_i - x_j].

    Args:
        q: queries (B, heads, y*w, d) of y rows of patches.
        k, v: keys and values (B, heads, prefix + h*w, d).
        rows: R_h of these rows (y, h, d).
        columns: R_w (w, w, d).
        drop_rate: dropout of the attention weights.

    Shape of the result: (B, heads, y*w, d).
    """
    patches = q.unflatten(2, (rows.shape[0], columns.shape[0]))  # (B, heads, y, w, d)
    bias_h = torch.einsum('bnyxd,yrd->bnyxr', patches, rows).flatten(2, 3)  # (B, heads, y*w, h)
    bias_w = torch.einsum('bnyxd,xcd->bnyxc', patches, columns).flatten(2, 3)  # (B, heads, y*w, w)
    bias = (bias_h[..., None] + bias_w[..., None, :]).flatten(-2)  # (B, heads, y*w, h*w)
    # Tokens before the patches have no bias.
    bias = F.pad(bias, (k.shape[2] - bias.shape[-1], 0))
    return F.scaled_dot_product_attention(q, k, v, attn_mask=bias, dropout_p=drop_rate)


def resample_relative(table: Tensor, length: int) -> Tensor:
    """Resample a table (2*s - 1, d) to ``length`` rows, as ViTDet does (arXiv:2203.16527)."""
    # In an export, the length may be dynamic: a comparison would fix it.
    if not isinstance(length, torch.SymInt) and table.shape[0] == length:
        return table
    return F.interpolate(table.t()[None].float(), size=length, mode='linear')[0].t().to(table.dtype)


def relative_table(table: Tensor, size: int) -> Tensor:
    """Look up a table (2*s - 1, d) of relative positions for every pair of ``size`` positions.

    The result has the shape (size, size, d). [i, j] is the row of the offset i - j. If ``size`` is
    not s, the table is resampled first.
    """
    table = resample_relative(table, 2 * size - 1)
    positions = torch.arange(size, device=table.device)
    return table[positions[:, None] - positions[None, :] + size - 1]
