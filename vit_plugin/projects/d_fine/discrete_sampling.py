"""RT-DETRv2's discrete sampling: attention to elements of maps (arXiv:2407.17140)."""

import torch
from torch import Tensor

from vit_plugin.models.layers.block_cfg import Grid


def discrete_samples(value: Tensor, size: Grid, points: Tensor, weights: Tensor) -> Tensor:
    """The weighted sum of elements of a map.

    A point takes the element at its coordinates in elements, rounded, as in the authors' code.
    Centers of elements have coordinates that end in .5, so a point at a center takes the next
    element to the right and below.

    Args:
        value: the elements of the map (B, h*w, heads, d).
        size: its rows and columns (h, w).
        points: x and y as fractions of the map's size (B, queries, heads, points, 2). Those outside
            take elements of the border.
        weights: the weight of each point (B, queries, heads, points).

    Returns:
        (B, queries, heads * d).
    """
    x, y = points.unbind(-1)
    row, column = (
        (coordinate * side + 0.5).long().clamp(0, side - 1)
        for coordinate, side in zip((y, x), size, strict=True)
    )
    index = (row * size[1] + column).transpose(1, 2)  # (B, heads, queries, points)
    elements = value.transpose(1, 2)  # (B, heads, h*w, d)
    index = index.flatten(2)[..., None].expand(-1, -1, -1, elements.shape[-1])
    samples = elements.gather(2, index).unflatten(2, (-1, points.shape[3]))
    return torch.einsum('bhqpd,bqhp->bqhd', samples, weights.to(samples)).flatten(2)
