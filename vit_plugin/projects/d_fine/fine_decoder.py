"""The decoder layers of RT-DETR, D-FINE, DEIMv2 and ECDet.

The papers share one layer of self-attention, deformable cross-attention and an MLP. Their
differences are rows of a table, :mod:`.decoder_variants`.
"""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from typing_extensions import TypedDict

from vit_plugin.arguments.fields import Depth, Positive, PositiveInt, PositiveInts, Rate
from vit_plugin.errors import ConfigError
from vit_plugin.models.layers.numerics import build_activation
from vit_plugin.projects.detr_family.decoder_memory import DecoderMemory

from .decoder_variants import Variant
from .fine_box_attention import FineBoxAttention


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


class FineDecoderLayer(nn.Module):
    """A decoder layer: self-attention, cross-attention to the maps, and an MLP.

    Args:
        dims: channels of the queries and of the maps.
        variant: the differences of a paper.
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
