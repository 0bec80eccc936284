"""Deformable attention: each query attends to a few points of several maps (arXiv:2010.04159).

It only needs torch's ``grid_sample``, which samples between the elements of a map.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_plugin.errors import ConfigError

from .block_cfg import Grid


class MapLevel(NamedTuple):
    """A map of an image.

    Attributes:
        size: rows and columns (h, w).
        stride: pixels per element along each side.
    """

    size: Grid
    stride: int

    def centers(self, like: Tensor) -> Tensor:
        """Element centers (h*w, 2) in pixels, x before y, with the device and dtype of ``like``."""
        y, x = (
            self.stride * (torch.arange(side, device=like.device, dtype=like.dtype) + 0.5)
            for side in self.size
        )
        y, x = torch.meshgrid(y, x, indexing='ij')
        return torch.stack((x, y), dim=-1).flatten(0, 1)


def deformable_attention(
    value: Tensor, sizes: Sequence[Grid], locations: Tensor, weights: Tensor
) -> Tensor:
    """The weighted sum of bilinear samples of maps (arXiv:2010.04159, Eq. 3, the inner sums).

    A sample outside of its map is zero, and near its border it fades to zero.

    Args:
        value: the elements of all maps in raster order, one map after the other (B, sum of h*w,
            heads, d).
        sizes: rows and columns (h, w) of each map.
        locations: where to sample, x and y as fractions of a map's size (B, queries, heads, maps,
            points, 2).
        weights: the weight of each sample (B, queries, heads, maps, points).

    Returns:
        (B, queries, heads * d), with the dtype of ``value``.
    """
    batch, _, heads, _ = value.shape
    # At least float32, since bfloat16 has exact integers only up to 256.
    dtype = torch.promote_types(value.dtype, torch.float32)
    out = torch.zeros((), dtype=dtype, device=value.device)
    for k, (size, elements) in enumerate(
        zip(sizes, value.split([h * w for h, w in sizes], dim=1), strict=True)
    ):
        # (B * heads, d, h, w).
        image = elements.permute(0, 2, 3, 1).flatten(0, 1).unflatten(2, size).to(dtype)
        # -1 to 1 within the map. Samples beyond 3 are zero, and infinite locations would give NaN.
        points = 2 * locations[:, :, :, k].transpose(1, 2).flatten(0, 1).to(dtype) - 1
        # (B * heads, d, queries, points).
        samples = F.grid_sample(image, points.clamp(-3, 3), align_corners=False)
        weight = weights[:, :, :, k].transpose(1, 2).flatten(0, 1)[:, None].to(dtype)
        out = out + (samples * weight).sum(-1)  # (B * heads, d, queries)
    return out.unflatten(0, (batch, heads)).permute(0, 3, 1, 2).flatten(2).to(value.dtype)


class PointAttention(nn.Module):
    """Attention to a few query-chosen points of several maps (arXiv:2010.04159, Section 4.1).

    A subclass chooses the points in its ``forward``, and calls :meth:`attend`.

    Args:
        embed_dims: width of the queries and of the maps.
        num_heads: number of heads. It must divide the width, and the width of the values.
        num_levels: number of maps.
        num_points: number of points of each head in each map.
        value_ratio: width of the values, as a fraction of ``embed_dims``.

    Raises:
        ConfigError: if the heads do not divide a width.
    """

    def __init__(
        self,
        embed_dims: int,
        num_heads: int,
        num_levels: int,
        num_points: int = 4,
        value_ratio: float = 1.0,
    ) -> None:
        super().__init__()
        value_dims = int(embed_dims * value_ratio)
        if embed_dims % num_heads or value_dims % num_heads or not value_dims:
            raise ConfigError(
                f'attention: num_heads={num_heads} does not divide the width {embed_dims} and the '
                f'{value_dims} channels of the values (value_ratio={value_ratio}); change '
                'num_heads or value_ratio.'
            )
        self.num_heads, self.num_levels, self.num_points = num_heads, num_levels, num_points
        samples = num_heads * num_levels * num_points
        self.sampling_offsets = nn.Linear(embed_dims, 2 * samples)
        self.attention_weights = nn.Linear(embed_dims, samples)
        self.value_proj = nn.Linear(embed_dims, value_dims)
        self.output_proj = nn.Linear(value_dims, embed_dims)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize as the authors do: point i of head k is in direction k, at distance i + 1."""
        for layer in (self.value_proj, self.output_proj):
            nn.init.xavier_uniform_(layer.weight)
        for layer in (self.sampling_offsets, self.attention_weights):
            nn.init.zeros_(layer.weight)
        for layer in (self.attention_weights, self.value_proj, self.output_proj):
            nn.init.zeros_(layer.bias)
        bias = self.sampling_offsets.bias
        angle = torch.arange(self.num_heads, dtype=torch.float32, device=bias.device) * (
            2 * math.pi / self.num_heads
        )
        direction = torch.stack((angle.cos(), angle.sin()), dim=-1)
        direction = direction / direction.abs().amax(dim=-1, keepdim=True)
        distance = torch.arange(1, self.num_points + 1, device=bias.device)
        offsets = (direction[:, None] * distance[:, None])[:, None].expand(
            -1, self.num_levels, -1, -1
        )
        with torch.no_grad():
            bias.copy_(offsets.flatten())

    def offsets(self, query: Tensor) -> Tensor:
        """Queries (B, queries, C) -> offsets (B, queries, heads, maps, points, 2), x before y."""
        return self.sampling_offsets(query).unflatten(
            -1, (self.num_heads, self.num_levels, self.num_points, 2)
        )

    def attend(
        self,
        query: Tensor,
        maps: Tensor,
        locations: Tensor,
        sizes: Sequence[Grid],
        padding: Tensor | None = None,
    ) -> Tensor:
        """Queries (B, queries, C) -> (B, queries, C).

        Args:
            query: the queries.
            maps: the elements of all maps in raster order, one map after the other (B, sum of h*w,
                C).
            locations: the points, as fractions of a map's size (B, queries, heads, maps, points,
                2).
            sizes: rows and columns (h, w) of each map.
            padding: True for elements outside the image (B, sum of h*w), whose values become zero.
        """
        value = self.value_proj(maps)
        if padding is not None:
            value = value.masked_fill(padding[..., None], 0)
        points = self.num_levels, self.num_points
        shape = self.num_heads, math.prod(points)
        weights = self.attention_weights(query).unflatten(-1, shape).softmax(dim=-1)
        out = deformable_attention(
            value.unflatten(-1, (self.num_heads, value.shape[-1] // self.num_heads)),
            sizes,
            locations,
            weights.unflatten(-1, points),
        )
        return self.output_proj(out)


class DeformableAttention(PointAttention):
    """Attention around the position of each query, with offsets in elements of each map."""

    def forward(
        self, query: Tensor, points: Tensor, maps: Tensor, levels: Sequence[MapLevel]
    ) -> Tensor:
        """Queries (B, queries, C) -> (B, queries, C).

        Args:
            query: the queries.
            points: their positions in pixels, x before y (queries, 2).
            maps: see :meth:`attend`.
            levels: size and stride of each map.
        """
        # Tensor products, since sizes may be dynamic in a graph: (maps, 1, 2).
        one = points.new_ones(())
        sides = torch.stack([one * side for level in levels for side in level.size[::-1]])
        sides = sides.unflatten(0, (-1, 1, 2))
        strides = points.new_tensor([level.stride for level in levels])[:, None, None]
        locations = (points[:, None, None, None] / strides + self.offsets(query)) / sides
        return self.attend(query, maps, locations, [level.size for level in levels])
