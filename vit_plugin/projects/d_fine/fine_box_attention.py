"""Deformable cross-attention to points around the boxes of queries, in one to several maps."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from vit_plugin.models.layers.block_cfg import Grid
from vit_plugin.models.layers.deformable_attention import deformable_attention

from .discrete_sampling import discrete_samples


class FineBoxAttention(nn.Module):
    """Deformable attention to points around the box of each query.

    Args:
        dims: channels of the queries and of the maps.
        num_heads: number of heads.
        num_points: points of each head in each map.
        offset_scale: see :class:`~.fine_decoder.FineDecoderCfg`.
        projects_maps: see :class:`~.decoder_variants.Variant`.
        discrete: see :class:`~.fine_decoder.FineDecoderCfg`.
    """

    def __init__(
        self,
        dims: int,
        num_heads: int,
        num_points: Sequence[int],
        offset_scale: float,
        projects_maps: bool = False,
        discrete: bool = False,
    ) -> None:
        super().__init__()
        self.value_proj = nn.Linear(dims, dims) if projects_maps else nn.Identity()
        self.output_proj = nn.Linear(dims, dims) if projects_maps else nn.Identity()
        self.num_heads, self.num_points = num_heads, tuple(num_points)
        self.offset_scale, self.discrete = offset_scale, discrete
        samples = num_heads * sum(num_points)
        self.sampling_offsets = nn.Linear(dims, 2 * samples)
        self.attention_weights = nn.Linear(dims, samples)
        if discrete:
            self.sampling_offsets.requires_grad_(False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Point i of head k starts at distance i + 1 in direction k; all points weigh the same."""
        for layer in (self.sampling_offsets, self.attention_weights):
            nn.init.zeros_(layer.weight)
        nn.init.zeros_(self.attention_weights.bias)
        angles = torch.arange(self.num_heads) * (2 * math.pi / self.num_heads)
        directions = torch.stack((angles.cos(), angles.sin()), dim=-1)
        directions = directions / directions.abs().amax(dim=-1, keepdim=True)
        reach = torch.cat([torch.arange(1, points + 1) for points in self.num_points])
        with torch.no_grad():
            start = directions[:, None] * reach[:, None]
            self.sampling_offsets.bias.copy_(start.flatten())
        for layer in (self.value_proj, self.output_proj):
            if isinstance(layer, nn.Linear):
                nn.init.xavier_uniform_(layer.weight)
                nn.init.zeros_(layer.bias)

    def forward(
        self,
        query: Tensor,
        boxes: Tensor,
        maps: Tensor,
        sizes: Sequence[Grid],
        padding: Tensor | None,
    ) -> Tensor:
        """Queries (B, Q, C) -> (B, Q, C).

        Args:
            query: the queries.
            boxes: the boxes (B, Q, maps, 4), which are (x, y, w, h) as fractions of each map.
            maps: the elements of all maps (B, N, C), one map after the other.
            sizes: rows and columns of each map.
            padding: the elements outside of the image (B, N), whose values become zero. None: no
                padding.
        """
        value = self.value_proj(maps)
        if padding is not None:
            value = value.masked_fill(padding[..., None], 0)
        value = value.unflatten(-1, (self.num_heads, -1))
        offsets = self.sampling_offsets(query).unflatten(-1, (self.num_heads, -1, 2))
        weights = self.attention_weights(query).unflatten(-1, (self.num_heads, -1)).softmax(-1)
        out = torch.zeros_like(query)
        levels = zip(
            sizes,
            value.split([h * w for h, w in sizes], dim=1),
            offsets.split(self.num_points, dim=3),
            weights.split(self.num_points, dim=3),
            boxes[:, :, None, :, None].unbind(3),  # for each map (B, Q, 1, 1, 4)
            self.num_points,
            strict=True,
        )
        for size, elements, offset, weight, box, points in levels:
            locations = box[..., :2] + offset * (self.offset_scale / points) * box[..., 2:]
            out = out + (
                discrete_samples(elements, size, locations, weight)
                if self.discrete
                else deformable_attention(
                    elements, [size], locations[:, :, :, None], weight[:, :, :, None]
                )
            )
        return self.output_proj(out)
