"""The position table of a checkpoint: find its grid and prefix rows, and fit it to a model.

A learned table (1, rows, C) has one row for each patch, and before them perhaps one for each prefix
token, such as the class token. Most checkpoints do not state the grid of the patches, so it is
found from the number of rows.
"""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_plugin.errors import ConfigError
from vit_plugin.weights.recognition import Recognized
from vit_plugin.weights.rules import GRID

from ..layers.pos_embed import LearnedPosEmbed

# Prefix tokens that may have rows in a checkpoint's table, in the order of these rows.
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
        self.tokens = tuple(backbone.prefix_tokens)
        self.is_learned = isinstance(self.position, LearnedPosEmbed)
        self.grid = grid

    def fitted(self, value: Tensor) -> tuple[Tensor, str]:
        """The table with the model's grid and prefix rows, and a description of the changes."""
        num_prefix, old = self.layout(value)
        model_prefix, new = self.position.num_prefix_rows, self.position.grid
        prefix, patches = value[:, :num_prefix], value[:, num_prefix:]
        changes = []
        if old != new:
            changes.append(f'positions of {size_text(old)} patches to {size_text(new)}')
        if num_prefix > model_prefix and self.tokens[:1] == TOKENS_WITH_ROWS[:1] and model_prefix:
            changes.append(
                'the row of the distillation token is left out, as the model has no such token'
            )
            prefix = prefix[:, :model_prefix]
        elif num_prefix > model_prefix:
            changes.append(
                'the rows of the tokens before the patches are '
                + (
                    'added to the tokens'
                    if self.tokens
                    else 'left out, as the model has no such tokens'
                )
            )
            prefix = prefix[:, :0]  # `with_row` adds them to the tokens
        elif num_prefix < model_prefix:
            changes.append('zeros for the tokens before the patches that have no row')
            prefix = F.pad(prefix, (0, 0, 0, model_prefix - num_prefix))
        patches = self.position.resample(patches, old, new)
        return torch.cat((prefix, patches), dim=1), ', '.join(changes)

    def grid_assumption(self, table: Tensor) -> str:
        """A note on the assumed grid of a table. Empty if the grid is stated or a square."""
        grid = self.layout(table)[1]
        if self.grid or self.position.source_grid or grid[0] == grid[1]:
            return ''
        return (
            f'pos_embed: {grid[0] * grid[1]} positions do not form a square, and are taken for the '
            f'{size_text(grid)} patches of the model; give source_grid=(rows, columns) if they '
            "aren't"
        )

    def with_row(self, token: str, value: Tensor) -> tuple[Tensor, str]:
        """Add a token's row of the table to the token, if the model's table has no such row.

        Returns:
            The token, and a description of the change or ''.
        """
        if self.position.num_prefix_rows or 'pos_embed' not in self.weights or not self.is_learned:
            return value, ''
        table = self.weights['pos_embed']
        if table.ndim != 3 or table.shape[2] != value.shape[2] or not self.layout(table)[0]:
            return value, ''
        row = 1 if token == 'dist_token' and 'cls_token' in self.weights else 0
        return value + table[:, row : row + 1], 'its row of the position table added'

    def layout(self, table: Tensor) -> tuple[int, tuple[int, int]]:
        """The number of rows for prefix tokens, and the grid (h, w) of the other rows.

        Raises:
            ConfigError: if no grid fits.
        """
        for num_prefix, grid in self._layouts():
            num_patches = table.shape[1] - num_prefix
            side = math.isqrt(max(num_patches, 0))
            h, w = grid or (side, side)
            if num_patches > 0 and h * w == num_patches:
                return num_prefix, (h, w)
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
        model_prefix, native = self.position.num_prefix_rows, self.position.grid
        # A table may have a row for a class token that the checkpoint lacks, as in ViTDet.
        num_tokens = sum(name in self.weights for name in TOKENS_WITH_ROWS) or 1
        stated = self.grid or self.position.source_grid
        if stated:
            return [(model_prefix, stated), (num_tokens, stated), (0, stated)]
        # Squares come before the model's own grid, which `grid_assumption` reports. A table without
        # prefix rows comes last.
        return [
            (model_prefix, None),
            (num_tokens, None),
            (model_prefix, native),
            (num_tokens, native),
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
