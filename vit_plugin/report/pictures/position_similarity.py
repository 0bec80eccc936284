"""Similarity of a model's position embeddings."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from matplotlib.figure import Figure
from torch import Tensor, nn

from vit_plugin.errors import ConfigError
from vit_plugin.models.layers.pos_embed import NoPosEmbed
from vit_plugin.models.layers.rotary import NoRotary
from vit_plugin.models.loading import find_backbone

from .style import COLORMAP, new_figure

MAX_TILES = 14  # along one side; more would be illegible


def position_similarity(model: nn.Module) -> Tensor:
    """Cosine similarity of all positions in the native grid (arXiv:2010.11929, Figure 7 center).

    Positions that are added to the patches are compared as vectors. If a model has only rotary
    positions, the result is the mean cosine of the angle between two positions, over all planes,
    heads and blocks.

    Returns:
        Similarities (h, w, h, w) of the position in the first two dimensions with all positions.

    Raises:
        ConfigError: if the model has only relative positions, or none.
    """
    _, backbone = find_backbone(model)
    position = backbone.position
    grid = position.grid
    with torch.no_grad():
        if not isinstance(position, NoPosEmbed):
            vectors = position.table(backbone.pos_embed, grid)[0, -grid[0] * grid[1] :]  # (h*w, C)
        elif not isinstance(backbone.rope, NoRotary):
            # One per block: ([heads,] prefix + h*w, d), cosines and sines.
            rotations = backbone.rope(grid, next(backbone.parameters()))
            vectors = torch.cat(
                [rotation.movedim(-2, 0).flatten(1) for rotation in rotations], dim=1
            )[-grid[0] * grid[1] :]
        else:
            raise ConfigError(
                'This model has no positions of single patches to compare: '
                'its positions are relative, or it has none.'
            )
        vectors = F.normalize(vectors.float(), dim=-1)
        return (vectors @ vectors.T).unflatten(1, grid).unflatten(0, grid)


def draw_position_similarity(similarity: Tensor) -> Figure:
    """Draw a tile for each position: a map of its similarity to all positions.

    Rows and columns are counted from 0. If there are more than :data:`MAX_TILES`, only every
    second, third, ... has tiles.

    Args:
        similarity: similarities (h, w, h, w).
    """
    h, w = similarity.shape[:2]
    step = math.ceil(max(h, w) / MAX_TILES)
    tiles = similarity[step // 2 :: step, step // 2 :: step].cpu()  # (rows, columns, h, w)
    rows, columns = tiles.shape[:2]
    gap = math.ceil(max(h, w) / 16)  # pixels between tiles; a position is one pixel
    tiles = F.pad(tiles, (0, gap, 0, gap), value=float('nan'))
    tiles = tiles.transpose(1, 2).flatten(2).flatten(0, 1)  # (rows * (h+gap), columns * (w+gap))
    inches = 6 / max(tiles.shape)
    figure = new_figure(tiles.shape[1] * inches + 1.3, tiles.shape[0] * inches + 0.6)
    axes = figure.add_subplot()
    picture = axes.imshow(tiles.numpy(), cmap=COLORMAP, vmin=-1, vmax=1)
    axes.set_xticks(
        np.arange(columns) * (w + gap) + (w - 1) / 2,
        map(str, range(step // 2, w, step)),
        fontsize='small',
    )
    axes.set_yticks(
        np.arange(rows) * (h + gap) + (h - 1) / 2,
        map(str, range(step // 2, h, step)),
        fontsize='small',
    )
    axes.set(xlabel='column of the patch', ylabel='row of the patch')
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    figure.colorbar(
        picture, label='cosine similarity', ticks=np.linspace(-1, 1, 5), aspect=30, pad=0.02
    )
    return figure
