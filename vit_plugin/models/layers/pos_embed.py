"""Position embeddings: tables added to the tokens, and the tables of relative positions.

A :class:`PosEmbed` owns no parameter. The backbone holds the one table there is as its ``pos_embed``,
the name that every public checkpoint uses, and passes it in.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from vit_plugin.errors import ConfigError

from .derived import Derives

Grid = tuple[int, int]

INTERPOLATIONS = {
    # scipy.ndimage.zoom(order=1), the authors' method: the end points stay where they are.
    'bilinear': dict(mode='bilinear', align_corners=True),
    # timm's and DeiT's, with the filter that shrinking needs.
    'bicubic': dict(mode='bicubic', align_corners=False, antialias=True),
}


def resize_grid(table: Tensor, old: Grid, new: Grid, interpolate_mode: str = 'bilinear') -> Tensor:
    """Resample a table (1, h*w, C) from one grid (h, w) to another; itself where they are equal.

    Raises:
        ConfigError: if ``interpolate_mode`` is not in ``INTERPOLATIONS``.
    """
    method = INTERPOLATIONS[_known(interpolate_mode)]
    if not any(isinstance(side, torch.SymInt) for side in new) and old == new:  # an export may leave the size open
        return table
    image = table.unflatten(1, old).permute(0, 3, 1, 2)  # (1, C, h, w)
    image = F.interpolate(image.float(), size=new, **method)
    return image.to(table.dtype).flatten(2).transpose(1, 2)  # (1, h'*w', C)


def _known(interpolate_mode: str) -> str:
    if interpolate_mode not in INTERPOLATIONS:
        raise ConfigError(
            f'pos_embed: interpolate_mode={interpolate_mode!r} is not one of {", ".join(INTERPOLATIONS)}.')
    return interpolate_mode


class PosEmbed(Derives):
    """No position table: the tokens are a bag of patches, or attention knows their relative positions.

    Args:
        grid: the native grid (h, w) of patches.
        embed_dims: width of the tokens.
        num_extra_tokens: tokens before the patches, such as the class token.
        interpolate_mode: how a learned table is resampled to other grids, a key of ``INTERPOLATIONS``.
        extra_rows: whether a learned table has rows for the extra tokens; big_vision's have none.
        source_grid: the grid (h, w) of the tables of checkpoints to load, where it is no square.

    Attributes:
        shape: shape of the parameter that it reads, or None.
    """

    shape: tuple[int, int, int] | None = None

    def __init__(self, grid: Grid, embed_dims: int, num_extra_tokens: int,
                 interpolate_mode: str = 'bilinear', extra_rows: bool = True,
                 source_grid: Grid | None = None) -> None:
        super().__init__()
        self.grid, self.embed_dims = grid, embed_dims
        self.num_extra_rows = num_extra_tokens if extra_rows else 0
        self.interpolate_mode = _known(interpolate_mode)
        self.source_grid = None if source_grid is None else tuple(source_grid)

    def table(self, weight: Tensor | None, grid: Grid) -> Tensor | None:
        """The table (1, N, C) of that grid; it may lack rows for the extra tokens, which then get none."""
        return None

    def forward(self, x: Tensor, weight: Tensor | None, grid: Grid) -> Tensor:
        """Add the positions of ``grid`` to the tokens (B, extra + h*w, C)."""
        table = self.derived(lambda: self.table(weight, grid), weight, key=grid)
        if table is None:
            return x
        # Under autocast the sum is float32, and with it what the blocks add to; else it has the model's dtype.
        table = table if torch.is_autocast_enabled(x.device.type) else table.to(x.dtype)
        return x + F.pad(table, (0, 0, x.shape[1] - table.shape[1], 0))


class LearnedPosEmbed(PosEmbed):
    """One learned row per token, in raster order (arXiv:2010.11929, Equation 1; '1-D' in Table 8)."""

    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self.shape = (1, self.num_extra_rows + self.grid[0] * self.grid[1], self.embed_dims)

    def table(self, weight: Tensor, grid: Grid) -> Tensor:
        extra, patches = weight[:, :self.num_extra_rows], weight[:, self.num_extra_rows:]
        return torch.cat((extra, self.resample(patches, self.grid, grid)), dim=1)

    def resample(self, patches: Tensor, old: Grid, new: Grid) -> Tensor:
        """Rows (1, h*w, C) of the patches of one grid as those of another."""
        return resize_grid(patches, old, new, self.interpolate_mode)


class Learned2dPosEmbed(PosEmbed):
    """A learned half for the row joined to one for the column (arXiv:2010.11929, Appendix D.4).

    The parameter holds rows of half the width: two per extra token, then one per row, one per column.

    Raises:
        ConfigError: if the width is odd.
    """

    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        if self.embed_dims % 2:
            raise ConfigError(f"pos_embed='learned_2d' needs an even width, got embed_dims={self.embed_dims}.")
        self.shape = (1, 2 * self.num_extra_rows + sum(self.grid), self.embed_dims // 2)

    def table(self, weight: Tensor, grid: Grid) -> Tensor:
        h, w = grid
        extra, rows, columns = weight.split((2 * self.num_extra_rows, *self.grid), dim=1)
        rows = resize_grid(rows, (self.grid[0], 1), (h, 1), self.interpolate_mode)  # (1, h, C/2)
        columns = resize_grid(columns, (1, self.grid[1]), (1, w), self.interpolate_mode)  # (1, w, C/2)
        patches = torch.cat((rows.repeat_interleave(w, dim=1), columns.repeat(1, h, 1)), dim=-1)
        return torch.cat((extra.reshape(1, -1, self.embed_dims), patches), dim=1)  # (1, extra + h*w, C)


class SinCos2dPosEmbed(PosEmbed):
    """Fixed sines and cosines of column and row (arXiv:2104.02057, MoCo v3; as in big_vision's `vit.py`).

    A grid of another size covers the same range of positions in finer or coarser steps.

    Raises:
        ConfigError: if the width is not a multiple of 4.
    """

    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        if self.embed_dims % 4 or self.embed_dims < 8:
            raise ConfigError("pos_embed='sincos2d' needs a width that is a multiple of 4 and at least 8, got "
                              f'embed_dims={self.embed_dims}.')
        self.register_buffer('_device', torch.empty(0), persistent=False)

    def table(self, weight: None, grid: Grid) -> Tensor:
        device = self._device.device
        quarter = self.embed_dims // 4
        omega = 10_000 ** -(torch.arange(quarter, device=device) / (quarter - 1))  # (C/4,)
        y, x = (torch.arange(size, device=device) * ((native - 1) / (size - 1 or 1))
                for native, size in zip(self.grid, grid, strict=True))
        y, x = torch.meshgrid(y, x, indexing='ij')
        y, x = y.flatten()[:, None] * omega, x.flatten()[:, None] * omega  # (h*w, C/4)
        return torch.cat((x.sin(), x.cos(), y.sin(), y.cos()), dim=1)[None]  # (1, h*w, C)


POS_EMBEDS: dict[str, type[PosEmbed]] = {
    'none': PosEmbed,
    'learned': LearnedPosEmbed,
    'learned_2d': Learned2dPosEmbed,
    'sincos2d': SinCos2dPosEmbed,
}


def relative_table(table: Tensor, size: int) -> Tensor:
    """Look up a table (2*s - 1, d) of relative positions for every pair of ``size`` positions.

    Shape of the result: (size, size, d); [i, j] is the row of the offset i - j. Another size than s
    resamples the table, as ViTDet does (arXiv:2203.16527).
    """
    if table.shape[0] != 2 * size - 1:
        table = F.interpolate(table.t()[None].float(), size=2 * size - 1, mode='linear')[0].t().to(table.dtype)
    positions = torch.arange(size, device=table.device)
    return table[positions[:, None] - positions[None, :] + size - 1]
