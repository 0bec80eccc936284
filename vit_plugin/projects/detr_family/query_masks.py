"""The layers of RF-DETR-Seg and ECSeg that predict a mask for each query.

A mask is the product of a query's embedding with every element of a map, as in MaskFormer.
"""

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class MapBlock(nn.Module):
    """ConvNeXt's block with one linear layer instead of its MLP, on a map (B, C, h, w)."""

    def __init__(self, dims: int) -> None:
        super().__init__()
        self.dwconv = nn.Conv2d(dims, dims, 3, padding=1, groups=dims)
        self.norm = nn.LayerNorm(dims, eps=1e-6)
        self.pwconv1 = nn.Linear(dims, dims)

    def forward(self, x: Tensor) -> Tensor:
        y = self.dwconv(x).permute(0, 2, 3, 1)  # (B, h, w, C)
        return x + F.gelu(self.pwconv1(self.norm(y))).permute(0, 3, 1, 2)


class QueryBlock(nn.Module):
    """A residual MLP for queries (B, Q, C)."""

    def __init__(self, dims: int) -> None:
        super().__init__()
        self.norm_in = nn.LayerNorm(dims)
        self.layers = nn.Sequential(nn.Linear(dims, 4 * dims), nn.GELU(), nn.Linear(4 * dims, dims))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.layers(self.norm_in(x))


class QueryMasks(nn.Module):
    """The masks of queries: their products with an enlarged map.

    For each layer of the decoder, one more block refines the map. The parameters have the names of
    RF-DETR, so that its weights fit.

    Args:
        dims: channels of map and queries.
        num_layers: number of decoder layers.
        scale: side of a mask relative to that of the map.
    """

    def __init__(self, dims: int, num_layers: int, scale: float) -> None:
        super().__init__()
        self.scale = scale
        self.blocks = nn.ModuleList(MapBlock(dims) for _ in range(num_layers))
        self.spatial_features_proj = nn.Conv2d(dims, dims, 1)
        self.query_features_block = QueryBlock(dims)
        self.query_features_proj = nn.Linear(dims, dims)
        self.bias = nn.Parameter(torch.zeros(1))

    def maps(self, x: Tensor) -> Iterator[Tensor]:
        """A map (B, C, h, w) -> enlarged maps: for the proposals, and then for each layer."""
        x = F.interpolate(x, scale_factor=self.scale, mode='bilinear')
        yield x
        for block in self.blocks:
            x = block(x)
            yield x

    def factors(self, level: Tensor, features: Tensor) -> tuple[Tensor, Tensor]:
        """Project both factors of masks, see :meth:`product`.

        Args:
            level: an enlarged map (B, C, h, w).
            features: queries (B, Q, C).

        Returns:
            The map (B, C, h, w) and the queries (B, Q, C), projected.
        """
        return (
            self.spatial_features_proj(level),
            self.query_features_proj(self.query_features_block(features)),
        )

    def product(self, elements: Tensor, queries: Tensor) -> Tensor:
        """Elements of a map (..., C, N) and queries (..., Q, C) -> logits (..., Q, N)."""
        return queries @ elements + self.bias

    def forward(self, level: Tensor, features: Tensor) -> Tensor:
        """An enlarged map (B, C, h, w) and queries (B, Q, C) -> logits of masks (B, Q, h, w)."""
        projected, queries = self.factors(level, features)
        return self.product(projected.flatten(2), queries).unflatten(2, projected.shape[2:])
