"""The position table of a checkpoint: find its grid and prefix rows, and fit it to a model."""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_plugin.errors import ConfigError
from vit_plugin.weights.recognition import Recognized
from vit_plugin.weights.rules import GRID

from ..layers.pos_embed import LearnedPosEmbed

TOKENS_WITH_ROWS = ('cls_token', 'dist_token')
MAX_GRID_SIDE = 2**20  # patches; a larger number comes from a damaged file


class PositionTable:
    """Fits a checkpoint's learned table, and the tokens that it has rows for, to one model.

    Args:
        backbone: the model's backbone.
        weights: the checkpoint's weights.
        grid: grid (h, w) of the table, if the checkpoint or the user states it. Our own checkpoints
            do. Otherwise a square is assumed, even if the number of rows equals the model's.
    """

    def __init__(
        self, backbone: nn.Module, weights: Recognized, grid: tuple[int, int] | None = None
    ) -> None:
        self.position, self.weights = backbone.position, weights
        self.has_tokens = bool(backbone.prefix_tokens)
        self.is_learned = isinstance(self.position, LearnedPosEmbed)
        self.grid = grid

    def fitted(self, value: Tensor) -> tuple[Tensor, str]:
        """The table with the model's grid and prefix rows, and a description of the changes."""
        rows, old = self.layout(value)
        model_rows, new = self.position.num_prefix_rows, self.position.grid
        extra, patches = value[:, :rows], value[:, rows:]
        changes = []
        if old != new:
            changes.append(f'positions of {size_text(old)} patches to {size_text(new)}')
        if rows > model_rows:
            changes.append(
                'the rows of the tokens before the patches are '
                + (
                    'added to the tokens'
                    if self.has_tokens
                    else 'left out, as the model has no such tokens'
                )
            )
            extra = extra[:, :0]
        elif rows < model_rows:
            changes.append('zeros for the tokens before the patches that have no row')
            extra = F.pad(extra, (0, 0, 0, model_rows - rows))
        patches = self.position.resample(patches, old, new)
        return torch.cat((extra, patches), dim=1), ', '.join(changes)

    def grid_assumption(self, table: Tensor) -> str:
        """The assumption about a table's grid. Empty if the grid is stated or a square."""
        grid = self.layout(table)[1]
        if self.grid or self.position.source_grid or grid[0] == grid[1]:
            return ''
        return (
            f'pos_embed: {grid[0] * grid[1]} positions do not form a square, and are taken for the '
            f'{size_text(grid)} patches of the model; give source_grid=(rows, columns) if they '
            "aren't"
        )

    def with_row(self, token: str, value: Tensor) -> tuple[Tensor, str]:
        """Add a token's row of the table to the token, if the model's table has no such row."""
        if self.position.num_prefix_rows or 'pos_embed' not in self.weights or not self.is_learned:
            return value, ''
        table = self.weights['pos_embed']
        if table.ndim != 3 or table.shape[2] != value.shape[2] or not self.layout(table)[0]:
            return value, ''
        row = 1 if token == 'dist_token' and 'cls_token' in self.weights else 0
        return value + table[:, row : row + 1], 'its row of the position table added'

    def layout(self, table: Tensor) -> tuple[int, tuple[int, int]]:
        """The number of rows for tokens before the patches, and the grid of the other rows.

        Raises:
            ConfigError: if no grid fits.
        """
        for extra, grid in self._layouts():
            patches = table.shape[1] - extra
            side = math.isqrt(max(patches, 0))
            h, w = grid or (side, side)
            if patches > 0 and h * w == patches:
                return extra, (h, w)
        if GRID in self.weights:
            raise ConfigError(
                f'pos_embed: the checkpoint has {table.shape[1]} positions, and its own grid of '
                f'{size_text(self.grid or ())} does not fit them: it is damaged.'
            )
        raise ConfigError(
            f'pos_embed: the checkpoint has {table.shape[1]} positions, which form no square of '
            'patches; give source_grid=(rows, columns) to load_weights, or in pos_embed of the '
            'backbone.'
        )

    def _layouts(self) -> list[tuple[int, tuple[int, int] | None]]:
        """Candidates (number of prefix rows, grid), most likely first. None means a square grid."""
        rows, native = self.position.num_prefix_rows, self.position.grid
        # A table may have a row for a class token that the checkpoint lacks, as in ViTDet.
        tokens = sum(name in self.weights for name in TOKENS_WITH_ROWS) or 1
        stated = self.grid or self.position.source_grid
        if stated:
            return [(rows, stated), (tokens, stated), (0, stated)]
        # Squares come before the model's own grid, which `grid_assumption` reports. A table without
        # prefix rows comes last.
        return [
            (rows, None),
            (tokens, None),
            (rows, native),
            (tokens, native),
            (0, None),
            (0, native),
        ]


def saved_grid(value: Tensor) -> tuple[int, int]:
    """The grid (h, w) that our own checkpoints contain.

    Raises:
        ConfigError: if it is not a grid.
    """
    if (
        value.shape != (2,)
        or value.is_floating_point()
        or not 0 < min(value.tolist()) <= max(value.tolist()) < MAX_GRID_SIDE
    ):
        raise ConfigError(f'{GRID} in the checkpoint is not a grid (rows, columns): it is damaged.')
    h, w = value.tolist()
    return h, w


def size_text(size: Sequence[int]) -> str:
    """A size as text, such as ``'14 x 14'``."""
    return f'{size[0]} x {size[1]}'
