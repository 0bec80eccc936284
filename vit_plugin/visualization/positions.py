"""How similar the positions of a model are."""

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

MAX_TILES = 14  # along one side; more could not be read


def position_similarity(model: nn.Module) -> Tensor:
    """The cosine similarity of every two places of a model's native grid (arXiv:2010.11929, Figure 7 centre).

    Positions that are added to the patches are compared as vectors. If a model has only rotary positions, the result is
    the mean cosine of the angle between two places, over all planes, heads and blocks.

    Returns:
        Similarities (h, w, h, w) of the place in the first two dimensions with all places.

    Raises:
        ConfigError: if the model has only relative positions, or none.
    """
    _, backbone = find_backbone(model)
    position = backbone.position
    grid = position.grid
    with torch.no_grad():
        if not isinstance(position, NoPosEmbed):
            vectors = position.table(backbone.pos_embed, grid)[0, -grid[0] * grid[1]:]  # (h*w, C)
        elif not isinstance(backbone.rope, NoRotary):
            rotations = backbone.rope(grid, next(backbone.parameters()))  # ([heads,] prefix + h*w, d) each
            vectors = torch.cat([one.movedim(-2, 0).flatten(1) for one in rotations], dim=1)[-grid[0] * grid[1]:]
        else:
            raise ConfigError('This model has no position of a single place that could be compared with others: its '
                              'positions are relative, or it has none.')
        vectors = F.normalize(vectors.float(), dim=-1)
        return (vectors @ vectors.T).unflatten(1, grid).unflatten(0, grid)


def draw_position_similarity(similarity: Tensor) -> Figure:
    """Draw a grid of grids: each tile shows the similarity of one place, the tile's own, with all places.

    Rows and columns are counted from 0. Of a grid with more than 14 rows or columns, every second, third ... of them
    has a tile.

    Args:
        similarity: similarities (h, w, h, w).
    """
    h, w = similarity.shape[:2]
    step = -(-max(h, w) // MAX_TILES)
    rows, columns = range(step // 2, h, step), range(step // 2, w, step)
    every = 1 + max(len(rows), len(columns)) // 8  # tiles have a number
    tile = min(0.42, 5 / max(len(rows), len(columns)))
    figure = new_figure(len(columns) * tile * max(w / h, 1) + 1.1, len(rows) * tile * max(h / w, 1) + 0.6)
    figure.set_layout_engine('constrained', w_pad=0.01, h_pad=0.01, wspace=0.02, hspace=0.02)
    axes = figure.subplots(len(rows), len(columns), squeeze=False)
    for (i, row), (j, column) in ((a, b) for a in enumerate(rows) for b in enumerate(columns)):
        panel = axes[i, j]
        picture = panel.imshow(similarity[row, column].cpu().numpy(), cmap=COLORMAP, vmin=-1, vmax=1)
        panel.set(xticks=[], yticks=[])
        panel.spines[:].set_visible(False)
        if j == 0 and i % every == 0:
            panel.set_ylabel(row, rotation=0, ha='right', va='center', fontsize='small')
        if i == len(rows) - 1 and j % every == 0:
            panel.set_xlabel(column, fontsize='small')
    figure.supylabel('row of the patch')
    figure.supxlabel('column of the patch')
    figure.colorbar(picture, ax=axes, label='cosine similarity', ticks=np.linspace(-1, 1, 5), aspect=30, pad=0.02)
    return figure
