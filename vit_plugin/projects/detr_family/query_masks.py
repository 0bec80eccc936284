"""The masks of the queries of RF-DETR-Seg and ECSeg."""

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class MapBlock(nn.Module):
    """ConvNeXt's block without its MLP, on a map (B, C, h, w)."""

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
    """A mask is the product of a query with an enlarged map. The parameters have RF-DETR's names.

    Before the masks of each layer of the decoder, one more block refines the map.

    Args:
        dims: channels of map and queries.
        num_layers: layers of the decoder.
        scale: sides of a mask over those of the map.
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
        """A map (B, C, h, w) -> enlarged maps, of the proposals and then of each layer."""
        x = F.interpolate(x, scale_factor=self.scale, mode='bilinear')
        yield x
        for block in self.blocks:
            x = block(x)
            yield x

    def factors(self, level: Tensor, features: Tensor) -> tuple[Tensor, Tensor]:
        """An enlarged map and queries (B, Q, C) -> both factors of masks, see :meth:`product`."""
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
