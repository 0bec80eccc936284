"""The decoder layers of RT-DETR, D-FINE, DEIMv2 and ECDet.

The papers share one layer of self-attention, deformable cross-attention and an MLP. Their
differences are listed in ``DECODER_VARIANTS``.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor, nn
from typing_extensions import TypedDict

from vit_plugin.arguments.fields import Depth, Positive, PositiveInt, PositiveInts, Rate
from vit_plugin.errors import ConfigError
from vit_plugin.models.layers.block_cfg import Grid
from vit_plugin.models.layers.deformable_attention import deformable_attention
from vit_plugin.models.layers.numerics import build_activation
from vit_plugin.projects.detr_family.decoder_memory import DecoderMemory

from .discrete_sampling import discrete_samples


class Variant(NamedTuple):
    """The differences between the decoders of these papers.

    Attributes:
        rms_norm: whether layers have RMSNorm and SwiGLU in place of LayerNorm and an MLP.
        position_layers: layers of the MLP from boxes to position embeddings.
        position_width: its width, relative to the queries.
        position_follows_boxes: whether position embeddings follow the boxes of each layer, instead
            of staying at the proposals.
        projects_proposals: whether map elements are projected and normed before they propose boxes.
        projects_maps: whether cross-attention projects its values and outputs, and whether maps are
            projected even if they have the width of the queries.
        gated: default of ``gated`` in :class:`FineDecoderCfg`.
        act: type of the activations of MLPs.
    """

    rms_norm: bool = False
    position_layers: int = 2
    position_width: int = 2
    position_follows_boxes: bool = True
    projects_proposals: bool = True
    projects_maps: bool = False
    gated: bool = True
    act: str = 'ReLU'


_ECDET = Variant(
    position_layers=3,
    position_width=1,
    position_follows_boxes=False,
    projects_proposals=False,
    act='SiLU',
)
DECODER_VARIANTS = {
    'rt_detr': Variant(projects_maps=True, gated=False),  # arXiv:2304.08069
    'd_fine': Variant(),  # arXiv:2410.13842, as transformers has it
    # RT-DETRv2 and D-FINE, trained by DEIM (arXiv:2412.04234).
    'rt_detr_deim': Variant(
        position_layers=3, position_width=1, projects_maps=True, gated=False, act='SiLU'
    ),
    'd_fine_deim': Variant(act='SiLU'),
    'ecdet': _ECDET,  # arXiv:2603.18739
    'deimv2': _ECDET._replace(rms_norm=True),  # arXiv:2509.20787
    # In transformers, positions follow the boxes, elements are projected, and MLPs have ReLU.
    'deimv2_transformers': Variant(rms_norm=True, position_layers=3, position_width=1),
}


class FineDecoderCfg(TypedDict, total=False):
    """The decoder of a :class:`~vit_plugin.projects.d_fine.proposing_head.ProposingHead`.

    Attributes:
        num_layers: number of layers. Default: 6.
        num_heads: heads of both attentions. Default: 8.
        num_points: number of points of each head in each map. Default: 4 in each.
        feedforward_channels: width of the MLPs. Default: 1024.
        drop_rate: dropout after attention and MLPs, and within MLPs without a gate. Default: 0.
        offset_scale: distance of points from the center of a box, relative to its sides. Default:
            0.5.
        gated: whether a gate weighs the output of cross-attention, instead of a norm after it.
            Default: that of the variant.
        discrete: whether points take an element each, without interpolation (RT-DETRv2,
            arXiv:2407.17140). Their offsets are not trained then. Default: False.
    """

    num_layers: Depth
    num_heads: PositiveInt
    num_points: PositiveInts
    feedforward_channels: PositiveInt
    drop_rate: Rate
    offset_scale: Positive
    gated: bool
    discrete: bool


class MLP(nn.Module):
    """Linear layers with an activation after each but the last."""

    def __init__(self, inputs: int, width: int, outputs: int, num_layers: int, act: str) -> None:
        super().__init__()
        widths = [inputs, *[width] * (num_layers - 1), outputs]
        self.layers = nn.ModuleList(nn.Linear(before, after) for before, after in pairwise(widths))
        self.act = build_activation(dict(type=act))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers[:-1]:
            x = self.act(layer(x))
        return self.layers[-1](x)


class FineBoxAttention(nn.Module):
    """Deformable attention to points around the box of each query.

    Args:
        dims: channels of the queries and of the maps.
        num_heads: number of heads.
        num_points: points of each head in each map.
        offset_scale: see :class:`FineDecoderCfg`.
        projects_maps: see :class:`Variant`.
        discrete: see :class:`FineDecoderCfg`.
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


class QueryGate(nn.Module):
    """The gated sum of two vectors, with gates computed from both (D-FINE, Section 4)."""

    def __init__(self, dims: int, norm: type[nn.Module]) -> None:
        super().__init__()
        self.gate, self.norm = nn.Linear(2 * dims, 2 * dims), norm(dims)
        nn.init.zeros_(self.gate.weight)
        nn.init.zeros_(self.gate.bias)

    def forward(self, x: Tensor, other: Tensor) -> Tensor:
        first, second = self.gate(torch.cat((x, other), dim=-1)).sigmoid().chunk(2, dim=-1)
        return self.norm(first * x + second * other)


class GatedMLP(nn.Module):
    """SwiGLU with half the channels in each of its two branches (arXiv:2002.05202)."""

    def __init__(self, dims: int, channels: int) -> None:
        super().__init__()
        self.gate_up = nn.Linear(dims, channels // 2 * 2)
        self.down = nn.Linear(channels // 2, dims)

    def forward(self, x: Tensor) -> Tensor:
        gate, up = self.gate_up(x).chunk(2, dim=-1)
        return self.down(nn.functional.silu(gate) * up)


class RMSNorm(nn.RMSNorm):
    """torch's RMSNorm with the eps of the published models."""

    def __init__(self, dims: int) -> None:
        super().__init__(dims, eps=1e-6)


class LocationQuality(nn.Module):
    """Adds the certainty of a box's distributions to its class logits (GFLv2, arXiv:2011.12885).

    Args:
        top: number of largest probabilities per edge to use, in addition to their mean.
        channels, num_layers, act: width, layers and activation of the MLP.
    """

    def __init__(
        self, top: int = 4, channels: int = 64, num_layers: int = 2, act: str = 'ReLU'
    ) -> None:
        super().__init__()
        self.top = top
        self.mlp = MLP(4 * (top + 1), channels, 1, num_layers, act)
        for parameter in self.mlp.layers[-1].parameters():
            nn.init.zeros_(parameter)

    def forward(self, logits: Tensor, edge_logits: Tensor) -> Tensor:
        """Logits (..., classes) and those of the edges (..., 4 * (bins + 1)) -> class logits."""
        best = edge_logits.unflatten(-1, (4, -1)).softmax(-1).topk(self.top, dim=-1).values
        x = torch.cat((best, best.mean(-1, keepdim=True)), dim=-1).flatten(-2)
        return logits + self.mlp(x)


class FineDecoderLayer(nn.Module):
    """A decoder layer: self-attention, cross-attention to the maps, and an MLP.

    Args:
        dims: channels of the queries and of the maps.
        variant: the differences of a paper, see :class:`Variant`.
        num_points, num_heads, feedforward_channels, drop_rate, offset_scale, gated, discrete: see
            :class:`FineDecoderCfg`.

    Raises:
        ConfigError: if the heads do not divide ``dims``.
    """

    def __init__(
        self,
        dims: int,
        variant: Variant,
        num_points: Sequence[int],
        num_heads: int = 8,
        feedforward_channels: int = 1024,
        drop_rate: float = 0.0,
        offset_scale: float = 0.5,
        gated: bool | None = None,
        discrete: bool = False,
    ) -> None:
        super().__init__()
        if dims % num_heads:
            raise ConfigError(f'decoder: num_heads={num_heads} must divide {dims} channels.')
        gated = variant.gated if gated is None else gated
        norm: type[nn.Module] = RMSNorm if variant.rms_norm else nn.LayerNorm
        self.self_attn = nn.MultiheadAttention(dims, num_heads, batch_first=True)
        self.cross_attn = FineBoxAttention(
            dims, num_heads, num_points, offset_scale, variant.projects_maps, discrete
        )
        self.gate = QueryGate(dims, norm) if gated else None
        self.mlp: nn.Module = (
            GatedMLP(dims, feedforward_channels)
            if variant.rms_norm
            else nn.Sequential(
                nn.Linear(dims, feedforward_channels),
                build_activation(dict(type=variant.act)),
                nn.Dropout(drop_rate),
                nn.Linear(feedforward_channels, dims),
            )
        )
        # After self-attention, after the MLP, and, without a gate, after cross-attention.
        self.norms = nn.ModuleList(norm(dims) for _ in range(2 if gated else 3))
        self.drop = nn.Dropout(drop_rate)

    def forward(
        self,
        query: Tensor,
        position: Tensor,
        boxes: Tensor,
        memory: DecoderMemory,
        attn_mask: Tensor | None,
        is_padded: bool,
    ) -> Tensor:
        """Queries (B, Q, C) -> queries (B, Q, C).

        Args:
            query, position: the queries and their position embeddings (B, Q, C).
            boxes: the boxes (B, Q, levels, 4), see :class:`FineBoxAttention`.
            memory: the maps.
            attn_mask: attention mask, True for queries that a query must not see (Q, Q), or None.
            is_padded: whether the maps are padded.
        """
        positioned = query + position
        update = self.self_attn(
            positioned, positioned, query, attn_mask=attn_mask, need_weights=False
        )[0]
        x = self.norms[0](query + self.drop(update))
        padding = memory.padding if is_padded else None
        update = self.cross_attn(x + position, boxes, memory.features, memory.grids, padding)
        update = self.drop(update)
        x = self.gate(x, update) if self.gate is not None else self.norms[2](x + update)
        return self.norms[1](x + self.drop(self.mlp(x)))


def position_mlp(dims: int, variant: Variant) -> nn.Module:
    """The MLP from boxes to position embeddings."""
    width = variant.position_width * dims
    return MLP(4, width, dims, variant.position_layers, variant.act)
