"""Attention with a learned bias for each offset of two patches (arXiv:2103.14030, Equation 4)."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .attention import Attention
from .block_cfg import BlockCfg, Grid, RelativePositions
from .grid_resize import resize_grid

# How a table is resampled to another grid, as in transformers' BEiT and MiDaS v3.1
# (arXiv:2307.14460).
INTERPOLATE_MODE = 'bilinear_mmpretrain'
# Additional rows after the offsets, for a prefix token as query, as key, and as both.
TOKEN_ROWS = 3
BIAS_TABLE = 'relative_position_bias_table'


class PositionBias(nn.Module):
    """A bias per head for each offset between two patches, as in BEiT (arXiv:2106.08254).

    Tokens before the patches have no position. They share three rows after the offsets: for such a
    token as the query of a patch, as the key of a patch, and for two such tokens.

    Args:
        positions: the native grid (h, w) of the table, and whether there are such tokens. For
            another grid the offset rows are resampled.
        num_heads: number of heads.
    """

    def __init__(self, positions: RelativePositions, num_heads: int) -> None:
        super().__init__()
        self.grid = positions.grid
        self.num_token_rows = TOKEN_ROWS if positions.has_tokens else 0
        rows = math.prod(count_offsets(self.grid)) + self.num_token_rows
        self.relative_position_bias_table = nn.Parameter(torch.empty(rows, num_heads))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.zeros_(self.relative_position_bias_table)

    def forward(self, grid: Grid) -> Tensor:
        """The bias (heads, N, N) on a grid (h, w), queries in rows and keys in columns.

        N is h*w, or 1 + h*w with tokens before the patches, where one row stands for all of them.
        """
        return self.bias(self.relative_position_bias_table, grid)

    def bias(self, table: Tensor, grid: Grid) -> Tensor:
        """The bias (heads, N, N) of a table (rows, heads) of the native grid."""
        table = resample_bias(table, self.grid, grid)
        sizes = (math.prod(count_offsets(grid)), self.num_token_rows)
        of_offsets, of_tokens = table.split(sizes)
        image = of_offsets.t().unflatten(1, count_offsets(grid))  # (heads, 2h-1, 2w-1)
        positions = [torch.arange(side, device=table.device) for side in grid]
        y, x = (
            axis[:, None] - axis[None, :] + side - 1
            for axis, side in zip(positions, grid, strict=True)
        )
        bias = image[:, y[:, None, :, None], x[None, :, None, :]]  # (heads, h, w, h, w)
        bias = bias.flatten(3).flatten(1, 2)  # (heads, h*w, h*w)
        if not self.num_token_rows:
            return bias
        query, key, both = of_tokens[:, :, None, None]  # (heads, 1, 1) each
        first = torch.cat((both, query.expand(-1, -1, bias.shape[2])), dim=2)
        bias = torch.cat((key.expand(-1, bias.shape[1], -1), bias), dim=2)
        return torch.cat((first, bias), dim=1)


class BiasAttention(Attention):
    """Attention with a bias for the relative position of patches.

    Args:
        cfg: the config, with ``relative``. If its form is ``'shared_bias'``, :meth:`forward` takes
            the bias of all blocks as ``position_input`` (heads, N, N).

    Shape: see :class:`Attention`.
    """

    def __init__(self, cfg: BlockCfg) -> None:
        super().__init__(cfg)
        assert cfg.relative is not None  # see `build_attention`
        self.has_tokens = cfg.relative.has_tokens
        is_own = cfg.relative.form == 'bias'
        self.rel_pos_bias = PositionBias(cfg.relative, cfg.num_heads) if is_own else None

    def project(
        self, x: Tensor, position_input: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        return super().project(x)

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
        """See :meth:`Attention.attend`."""
        bias = self.rel_pos_bias(grid) if self.rel_pos_bias else position_input
        assert bias is not None  # the backbone passes a shared bias
        extra = k.shape[2] - grid[0] * grid[1] - (1 if self.has_tokens else 0)
        if extra:  # queries of an EoMT, and prefix tokens after the first
            bias = F.pad(bias, (extra, 0, extra, 0), 'replicate' if self.has_tokens else 'constant')
        bias = bias[:, : q.shape[2]].to(q.dtype)  # (heads, M, N)
        if mask is None:
            return F.scaled_dot_product_attention(q, k, v, attn_mask=bias, dropout_p=drop_rate)
        rows = mask.shape[2]
        masked = bias[:, :rows].masked_fill(~mask, -math.inf)  # (B, heads, rows, N)
        parts = ((q[:, :, :rows], masked), (q[:, :, rows:], bias[:, rows:]))
        return torch.cat(
            [
                F.scaled_dot_product_attention(part, k, v, attn_mask=part_bias, dropout_p=drop_rate)
                for part, part_bias in parts
            ],
            dim=2,
        )


def count_offsets(grid: Grid) -> Grid:
    """The number of offsets of rows and of columns in a grid (h, w)."""
    return 2 * grid[0] - 1, 2 * grid[1] - 1


def resample_bias(table: Tensor, old: Grid, new: Grid) -> Tensor:
    """Resample the offset rows of a table (rows, heads) from one grid (h, w) to another.

    The rows for prefix tokens after them are unchanged.
    """
    number = math.prod(count_offsets(old))
    offsets = resize_grid(
        table[None, :number], count_offsets(old), count_offsets(new), INTERPOLATE_MODE
    )
    return torch.cat((offsets[0], table[number:]))
