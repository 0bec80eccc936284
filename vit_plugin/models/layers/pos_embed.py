"""Position embeddings: tables that are added to the tokens.

A :class:`PosEmbed` has no parameter. The backbone holds the learned table as its parameter
``pos_embed`` and passes it in. Public checkpoints use the same name.
"""

from collections.abc import Mapping
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from typing_extensions import TypedDict

from vit_plugin.arguments.fields import Pair
from vit_plugin.errors import ConfigError

from .block_cfg import Grid, RelativeForm
from .grid_resize import Interpolation, resize_grid
from .rotary import RotaryCfg

EXTRA_STATE = '_extra_state'  # torch's key for the result of `get_extra_state`


class PosEmbed(nn.Module):
    """Adds the positions to the tokens.

    Args:
        grid: the native grid (h, w) of patches.
        embed_dims: width of the tokens.
        num_prefix_tokens: number of tokens before the patches, such as the class token.
        interpolate_mode: how a learned table is resampled to other grids, a key of
            :data:`~vit_plugin.models.layers.grid_resize.TABLE_INTERPOLATIONS`. The types
            ``'none'`` and ``'sincos2d'`` accept and ignore it, since the configs of published
            models also give it where there is no table.
        prefix_rows: whether a learned table has rows for the tokens before the patches.
            big_vision's tables do not. ``'none'`` and ``'sincos2d'`` ignore it, too.
        source_grid: grid (h, w) of the table in foreign checkpoints to load. Only needed if it is
            not square.

    Attributes:
        shape: shape of the backbone's parameter ``pos_embed``, or None if there is no parameter.
    """

    shape: tuple[int, int, int] | None = None

    def __init__(
        self,
        grid: Grid,
        embed_dims: int,
        num_prefix_tokens: int,
        interpolate_mode: str = 'bilinear',
        prefix_rows: bool = True,
        source_grid: Grid | None = None,
    ) -> None:
        super().__init__()
        self.grid, self.embed_dims = grid, embed_dims
        self.num_prefix_rows = num_prefix_tokens if prefix_rows else 0
        self.interpolate_mode = interpolate_mode
        self.source_grid: Grid | None = source_grid and (source_grid[0], source_grid[1])

    def table(self, weight: Any, grid: Grid, device: torch.device | None = None) -> Tensor:
        """The table (1, N, C) of a grid. It may lack the rows for the tokens before the patches.

        ``weight`` is the backbone's parameter ``pos_embed``, or None if there is none.
        """
        raise NotImplementedError

    def forward(self, x: Tensor, weight: Any, grid: Grid) -> Tensor:
        """Add the positions of ``grid`` to the tokens (B, prefix + h*w, C)."""
        table = self.table(weight, grid, x.device)
        # Under autocast the sum stays in float32, and so do the sums in the blocks. The meta device
        # has no autocast.
        under_autocast = not x.is_meta and torch.is_autocast_enabled(x.device.type)
        table = table if under_autocast else table.to(x.dtype)
        return x + F.pad(table, (0, 0, x.shape[1] - table.shape[1], 0))


class NoPosEmbed(PosEmbed):
    """No added positions. Attention may still have relative positions."""

    def forward(self, x: Tensor, weight: None, grid: Grid) -> Tensor:
        return x


class LearnedPosEmbed(PosEmbed):
    """One learned row per token, in raster order (arXiv:2010.11929, Equation 1; '1-D' in Table 8).

    The grid is saved with the model, because tables of 24 x 32 and 32 x 24 patches have the same
    number of rows.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.shape = (1, self.num_prefix_rows + self.grid[0] * self.grid[1], self.embed_dims)

    def get_extra_state(self) -> Tensor:
        """The grid (h, w), for the state dict."""
        return torch.tensor(self.grid)

    def set_extra_state(self, state: Tensor) -> None:
        """Do nothing: before this call, the loader has resampled the table to the model's grid.

        See :mod:`vit_plugin.models.loading.hooks`.
        """

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        # Checkpoints of other libraries have no grid.
        state_dict.setdefault(f'{prefix}{EXTRA_STATE}', self.get_extra_state())
        super()._load_from_state_dict(state_dict, prefix, *args)

    def table(self, weight: Tensor, grid: Grid, device: torch.device | None = None) -> Tensor:
        prefix, patches = weight[:, : self.num_prefix_rows], weight[:, self.num_prefix_rows :]
        return torch.cat((prefix, self.resample(patches, self.grid, grid)), dim=1)

    def resample(self, patches: Tensor, old: Grid, new: Grid) -> Tensor:
        """Resample the rows (1, h*w, C) of the patches to another grid."""
        return resize_grid(patches, old, new, self.interpolate_mode)


class Learned2dPosEmbed(PosEmbed):
    """Learned row and column positions of half the token width (arXiv:2010.11929, Appendix D.4).

    The parameter holds vectors of half the width: two per token before the patches, one per row,
    one per column.

    Raises:
        ConfigError: if the width is odd.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.embed_dims % 2:
            raise ConfigError(
                f"pos_embed='learned_2d' needs an even width, got embed_dims={self.embed_dims}."
            )
        self.shape = (1, 2 * self.num_prefix_rows + sum(self.grid), self.embed_dims // 2)

    def table(self, weight: Tensor, grid: Grid, device: torch.device | None = None) -> Tensor:
        h, w = grid
        prefix, rows, columns = weight.split((2 * self.num_prefix_rows, *self.grid), dim=1)
        rows = resize_grid(rows, (self.grid[0], 1), (h, 1), self.interpolate_mode)  # (1, h, C/2)
        # (1, w, C/2).
        columns = resize_grid(columns, (1, self.grid[1]), (1, w), self.interpolate_mode)
        patches = torch.cat(
            (rows[:, :, None].expand(-1, -1, w, -1), columns[:, None].expand(-1, h, -1, -1)), dim=-1
        )
        # (1, prefix + h*w, C).
        return torch.cat((prefix.reshape(1, -1, self.embed_dims), patches.flatten(1, 2)), dim=1)


class SinCos2dPosEmbed(PosEmbed):
    """Fixed sines and cosines of column and row, as in `posemb_sincos_2d` of big_vision's `vit.py`.

    By default a grid of another size covers the same range of positions in finer or coarser steps.

    Args:
        endpoint: whether the wavelengths reach 10,000 x 2 pi, as in big_vision. In MAE (arXiv:
            2111.06377) and MoCo v3 (arXiv:2104.02057), they end one step before.
        spread: whether grids of other sizes are scaled to the range of the native grid. If not,
            positions are patch indices, as in AIMv2 at native sizes (arXiv:2411.14402).
        *args, **kwargs: see :class:`PosEmbed`.

    Raises:
        ConfigError: if the width is not a multiple of 4, or is 4.
    """

    def __init__(
        self, *args: Any, endpoint: bool = True, spread: bool = True, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.endpoint, self.spread = endpoint, spread
        if self.embed_dims % 4 or self.embed_dims < 8:
            raise ConfigError(
                "pos_embed='sincos2d' needs a width that is a multiple of 4 and at least 8, got "
                f'embed_dims={self.embed_dims}.'
            )

    def table(self, weight: None, grid: Grid, device: torch.device | None = None) -> Tensor:
        quarter = self.embed_dims // 4
        steps = torch.arange(quarter, device=device).to(torch.float32)  # (C/4,)
        omega = 10_000 ** -(steps / (quarter - 1 if self.endpoint else quarter))
        y, x = (torch.arange(size, device=device).to(torch.float32) for size in grid)
        if self.spread:
            y, x = (
                axis * (native - 1) / (size - 1 or 1)
                for axis, native, size in zip((y, x), self.grid, grid, strict=True)
            )
        y, x = torch.meshgrid(y, x, indexing='ij')
        y, x = y.flatten()[:, None] * omega, x.flatten()[:, None] * omega  # (h*w, C/4)
        return torch.cat((x.sin(), x.cos(), y.sin(), y.cos()), dim=1)[None]  # (1, h*w, C)


POS_EMBEDS: dict[str, type[PosEmbed]] = {
    'none': NoPosEmbed,
    'learned': LearnedPosEmbed,
    'learned_2d': Learned2dPosEmbed,
    'sincos2d': SinCos2dPosEmbed,
}

# 'relative' is short for `type='none', relative=True`.
PosEmbedName = Literal['none', 'learned', 'learned_2d', 'sincos2d', 'relative']


class PosEmbedCfg(TypedDict, total=False):
    """The type and arguments of a :class:`PosEmbed`, and the positions inside attention."""

    type: PosEmbedName
    relative: bool | Literal['bias', 'shared_bias']
    rotary: RotaryCfg | None
    interpolate_mode: Interpolation
    prefix_rows: bool
    endpoint: bool
    spread: bool
    source_grid: Pair | None


def build_positions(
    pos_embed: Mapping[str, Any], grid: Grid, embed_dims: int, num_prefix_tokens: int
) -> tuple[PosEmbed, RelativeForm | None, RotaryCfg | None]:
    """Build the positions in a backbone's ``pos_embed``, see :class:`PosEmbedCfg`.

    Returns:
        The positions that are added to the tokens, the form of relative positions in attention or
        None, and the config of its rotary positions or None.

    Raises:
        ConfigError: for ``endpoint`` or ``spread`` of another type than ``'sincos2d'``, or if the
            width does not fit the type.
    """
    cfg = {'type': 'learned', 'relative': False, 'rotary': None, **pos_embed}
    kind, relative, rotary = (cfg.pop(name) for name in ('type', 'relative', 'rotary'))
    if kind == 'relative':
        kind, relative = 'none', relative or True  # or the form that is stated too
    for name in ('endpoint', 'spread'):
        if name in cfg and kind != 'sincos2d':
            raise ConfigError(
                f"pos_embed: {name} belongs to type='sincos2d', but this is {kind!r}; leave it out."
            )
    form: RelativeForm | None = 'decomposed' if relative is True else relative or None
    return POS_EMBEDS[kind](grid, embed_dims, num_prefix_tokens, **cfg), form, rotary
