"""Attention within windows, for each kind of positions.

The patches of an image are split into windows, which become the batch of ordinary attention.
"""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from .attention import Attention
from .block_cfg import BlockCfg, Grid
from .position_bias import BiasAttention
from .relative_position import RelativeAttention


class InWindows(Attention):
    """Restricts :class:`Attention` or a subclass to windows (arXiv:2203.16527, Section 3).

    If the window does not divide the grid, the grid is padded with zero tokens at the right and
    bottom. These zero tokens take part as keys. ViTDet does the same, and its weights expect it.

    Args:
        cfg: the config, with ``window``.

    Shape: tokens (B, N, embed_dims) -> the same. The last h*w are the patches. Tokens before them
    are divided evenly over the windows; most backbones allow none, see ``tokens_in_windows`` of
    :class:`~vit_plugin.models.VisionTransformer`.
    """

    def __init__(self, cfg: BlockCfg) -> None:
        super().__init__(cfg)
        assert cfg.window is not None  # see `build_attention`
        self.window = cfg.window

    def forward(
        self,
        x: Tensor,
        grid: Grid,
        num_queries: int | None = None,
        position_input: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        assert mask is None  # only EoMT gives masks, and it does not support windows
        windows, window = self._windows(x, grid), self.window.within(grid)
        rotation = self.window_rotation(position_input, grid, windows.shape[0])
        windows = super().forward(windows, window, position_input=rotation)
        prefix, patches = windows.tensor_split((-math.prod(window),), dim=1)
        tokens = _joined(prefix, from_windows(patches, grid, window))
        return tokens[:, :num_queries]

    def _windows(self, x: Tensor, grid: Grid) -> Tensor:
        """Tokens (B, N, C) -> windows (B * windows, prefix + rows*columns, C)."""
        prefix, patches = x.tensor_split((-math.prod(grid),), dim=1)
        windows = to_windows(patches, grid, self.window.within(grid))
        return _joined(prefix, windows)

    def weights(self, x: Tensor, grid: Grid, position_input: Tensor | None = None) -> Tensor:
        """The attention weights (B * windows, heads, N, N) of each window's N tokens.

        The windows are in raster order.
        """
        windows = self._windows(x, grid)
        rotation = self.window_rotation(position_input, grid, windows.shape[0])
        return super().weights(windows, self.window.within(grid), rotation)

    def window_rotation(self, rotation: Any, grid: Grid, num_windows: int) -> Tensor | None:
        """The rotations of B * windows windows, see ``RotaryWindowAttention``. Others have none."""
        return None


class WindowAttention(InWindows, Attention):
    """Attention within windows."""


class RelativeWindowAttention(InWindows, RelativeAttention):
    """Attention with relative positions within windows."""


class BiasWindowAttention(InWindows, BiasAttention):
    """Attention with a bias for relative positions within windows."""


def _joined(prefix: Tensor, patches: Tensor) -> Tensor:
    """Prepend prefix tokens, divided evenly over the batch, to patches (B, N, C).

    Without any, nothing is copied.
    """
    if not prefix.shape[1]:
        return patches
    return torch.cat((prefix.reshape(patches.shape[0], -1, patches.shape[-1]), patches), dim=1)


def num_windows(grid: Grid, window: Grid) -> int:
    """The number of windows of a grid, partial ones included."""
    return math.prod(-(-side // size) for side, size in zip(grid, window, strict=True))


def to_windows(x: Tensor, grid: Grid, window: Grid) -> Tensor:
    """Patches (B, h*w, C) -> zero-padded windows (B * windows, rows*columns, C).

    Each image has ceil(h/rows) * ceil(w/columns) windows.
    """
    (h, w), (rows, columns) = grid, window
    x = F.pad(x.unflatten(1, grid), (0, 0, 0, -w % columns, 0, -h % rows))
    x = x.unflatten(2, (-1, columns)).unflatten(1, (-1, rows))  # (B, n, rows, m, columns, C)
    return x.transpose(2, 3).flatten(3, 4).flatten(0, 2)


def from_windows(x: Tensor, grid: Grid, window: Grid) -> Tensor:
    """Inverse of :func:`to_windows`. It removes the padding."""
    (h, w), (rows, columns) = grid, window
    x = x.unflatten(1, window).unflatten(0, (-1, -(-h // rows), -(-w // columns)))
    x = x.transpose(2, 3).flatten(3, 4).flatten(1, 2)  # (B, n*rows, m*columns, C)
    return x[:, :h, :w].flatten(1, 2)
