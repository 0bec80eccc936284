"""The hybrid encoder of RT-DETR, D-FINE and DEIMv2: attention on one map, then a CNN on all."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, Literal

import torch
import torch.nn.functional as F
from mmengine.model import BaseModule
from pydantic import Field
from torch import Tensor, nn

from vit_plugin.arguments.fields import (
    MAX_COUNT,
    Count,
    Factor,
    InitConfig,
    NormConfig,
    PositiveInt,
    PositiveInts,
    Rate,
)
from vit_plugin.errors import ConfigError
from vit_plugin.models.layers.conv_norm import ConvNorm
from vit_plugin.models.layers.numerics import build_activation
from vit_plugin.projects.detr_family.rep_conv import RepELAN, TwoWayCSP
from vit_plugin.registry import MODELS

BLOCKS_OF_DEPTH = 3  # `RepConv`s per CSP block at depth 1
Kind = Literal['csp', 'elan', 'split', 'split_trailing']
# A multiple of 4: sine and cosine of two axes, see `sine_positions`.
Width = Annotated[int, Field(gt=0, le=MAX_COUNT, multiple_of=4)]


@MODELS.register_module()
class HybridEncoder(BaseModule):
    """Attention within the coarsest map, then fusion top-down and bottom-up (arXiv:2304.08069).

    Args:
        in_channels: channels of the backbone's maps, from the finest.
        out_channels: channels of every output.
        kind: the fusion blocks. ``'csp'``: RT-DETR's. ``'elan'``: D-FINE's (arXiv:2410.13842).
            ``'split'`` and ``'split_trailing'``: DEIMv2's (arXiv:2509.20787), which add maps
            instead of concatenating them.
        depth: ``RepConv``s per CSP block, as a multiple of three. ``'csp'`` always has three.
        expansion: width of the CSP blocks, as a multiple of ``out_channels`` in ``'csp'``, and of
            half of it in the other kinds.
        num_layers: attention layers. 0: none.
        num_heads, feedforward_channels, drop_rate: options of these layers.
        act, attention_act: types of the activations of convolutions and of these layers' MLPs.
        attended: indices of the maps with attention.
        norm_cfg: the norms of the convolutions.
        projects: whether maps are projected to ``out_channels`` first; otherwise
            ``in_channels`` must equal ``out_channels``.
        init_cfg: MMEngine's initialization config.

    Shape: maps (B, C, h, w), each of half the size of the one before, rounded up -> as many maps
    (B, out_channels, h, w) of the same sizes.

    Raises:
        ConfigError: for maps of other channels, an index in ``attended`` without a map, or a number
            of heads that does not divide ``out_channels``.
    """

    def __init__(
        self,
        in_channels: PositiveInts,
        out_channels: Width = 256,
        kind: Kind = 'elan',
        depth: Factor = 1.0,
        expansion: Factor = 1.0,
        num_layers: Count = 1,
        num_heads: PositiveInt = 8,
        feedforward_channels: PositiveInt = 1024,
        drop_rate: Rate = 0.0,
        act: str = 'SiLU',
        attention_act: str = 'GELU',
        attended: Sequence[Count] = (-1,),
        norm_cfg: NormConfig = dict(type='BN'),
        projects: bool = True,
        init_cfg: InitConfig = None,
    ) -> None:
        super().__init__(init_cfg)
        last, conv = len(in_channels) - 1, partial(ConvNorm, norm_cfg=norm_cfg)
        if not projects and {*in_channels} != {out_channels}:
            raise ConfigError(
                f'HybridEncoder: in_channels={list(in_channels)} must all be {out_channels} with '
                'projects=False.'
            )
        self.in_channels, self.adds_maps = list(in_channels), kind.startswith('split')
        attended_maps = _attended_maps(attended, last)
        self.attended = attended_maps if num_layers else []
        if self.attended and out_channels % num_heads:
            raise ConfigError(
                f'HybridEncoder: num_heads={num_heads} must divide out_channels={out_channels}.'
            )
        self.projections = nn.ModuleList(
            conv(channels, out_channels, 1) for channels in in_channels if projects
        )
        layer = partial(
            AttentionLayer, out_channels, num_heads, feedforward_channels, drop_rate, attention_act
        )
        self.attentions = nn.ModuleList(
            nn.ModuleList(layer() for _ in range(num_layers)) for _ in self.attended
        )
        fuse = partial(_fusion_block, kind, out_channels, depth, expansion, conv, act)
        self._build_fusion(last, out_channels, kind == 'csp', conv, fuse, act)

    def _build_fusion(
        self, steps: int, dims: int, is_csp: bool, conv: Any, fuse: Any, act: str
    ) -> None:
        """Build the top-down and the bottom-up layers, with a step for each map after the first."""
        lateral_act = act if is_csp else 'Identity'
        self.laterals = nn.ModuleList(conv(dims, dims, 1, act=lateral_act) for _ in range(steps))
        self.top_down = nn.ModuleList(fuse() for _ in range(steps))
        self.downs = nn.ModuleList(
            conv(dims, dims, 3, act=act, stride=2) if is_csp else _separable_down(dims, conv)
            for _ in range(steps)
        )
        self.bottom_up = nn.ModuleList(fuse() for _ in range(steps))

    def forward(self, feats: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Fuse the maps of the backbone, see the class."""
        if [x.shape[1] for x in feats] != self.in_channels:
            raise ConfigError(
                f'HybridEncoder got {[tuple(x.shape) for x in feats]} but takes maps (B, C, h, w) '
                f'of in_channels={self.in_channels}: change these, or the out_indices of the '
                'backbone.'
            )
        maps = [*feats]
        for i, layer in enumerate(self.projections):
            maps[i] = layer(maps[i])
        for i, layers in zip(self.attended, self.attentions, strict=True):
            maps[i] = _apply_attention(maps[i], layers)
        tops = [maps.pop()]  # from the coarsest
        for lateral, fuse in zip(self.laterals, self.top_down, strict=True):
            tops[-1] = lateral(tops[-1])
            finer = maps.pop()
            doubled = F.interpolate(tops[-1], finer.shape[2:], mode='nearest')
            tops.append(fuse(self._merge(doubled, finer)))
        outs = [tops.pop()]  # from the finest
        for down, fuse in zip(self.downs, self.bottom_up, strict=True):
            outs.append(fuse(self._merge(down(outs[-1]), tops.pop())))
        return tuple(outs)

    def _merge(self, first: Tensor, second: Tensor) -> Tensor:
        """The input of a fusion block, from two maps of the same size."""
        return first + second if self.adds_maps else torch.cat((first, second), dim=1)


def _attended_maps(attended: Sequence[int], last: int) -> list[int]:
    """The indices of maps with attention, from 0; ``last`` is that of the last map.

    Raises:
        ConfigError: for an index without a map.
    """
    if not {*attended} <= {*range(-1, last + 1)}:
        raise ConfigError(
            f'HybridEncoder: attended={list(attended)} must be from 0 to {last}, or -1.'
        )
    return [i % (last + 1) for i in attended]


def _fusion_block(
    kind: Kind, channels: int, depth: float, expansion: float, conv: Any, act: str
) -> Any:
    """The block that merges two neighboring maps.

    Args:
        kind, depth, expansion: see :class:`HybridEncoder`.
        channels: channels of each map.
        conv: builds a convolution with its norm.
        act: type of the activations.
    """
    blocks = round(BLOCKS_OF_DEPTH * depth)
    if kind == 'csp':
        width = int(channels * expansion)
        return TwoWayCSP(2 * channels, channels, BLOCKS_OF_DEPTH, width, conv, act)
    width, split = round(expansion * channels // 2), kind.startswith('split')
    inputs = channels if split else 2 * channels
    return RepELAN(inputs, channels, width, blocks, split, kind == 'split_trailing', conv, act)


def _separable_down(channels: int, conv: Any) -> nn.Sequential:
    """A projection, then a depthwise 3 x 3 convolution that halves the map (YOLOv10)."""

    def depthwise(inputs: int, outputs: int, kernel: int, stride: int) -> nn.Conv2d:
        return nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=outputs, bias=False)

    return nn.Sequential(
        conv(channels, channels, 1), conv(channels, channels, 3, stride=2, conv=depthwise)
    )


def _apply_attention(x: Tensor, layers: nn.ModuleList) -> Tensor:
    """Apply self-attention to a map (B, C, h, w)."""
    size, tokens = x.shape[2:], x.flatten(2).mT  # (B, h*w, C)
    position = sine_positions(size[0], size[1], tokens)
    for layer in layers:
        tokens = layer(tokens, position)
    return tokens.mT.unflatten(2, size)


def sine_positions(rows: int, columns: int, like: Tensor, temperature: float = 1e4) -> Tensor:
    """Position embeddings (h*w, C): sine and cosine of the row, then of the column.

    Args:
        rows, columns: size of the map.
        like: a tensor (..., C), which determines the device and dtype.
        temperature: longest wavelength over 2 pi.
    """
    quarter = like.shape[-1] // 4
    dtype = torch.promote_types(like.dtype, torch.float32)
    powers = torch.arange(quarter, device=like.device, dtype=dtype) / quarter
    y, x = (
        torch.arange(side, device=like.device, dtype=dtype)[:, None] / temperature**powers
        for side in (rows, columns)
    )
    y = y[:, None].expand(-1, columns, -1).flatten(0, 1)
    x = x[None].expand(rows, -1, -1).flatten(0, 1)
    return torch.cat((y.sin(), y.cos(), x.sin(), x.cos()), dim=-1).to(like)


class AttentionLayer(nn.Module):
    """A layer of a transformer's encoder, with its norms after attention and MLP."""

    def __init__(
        self, dims: int, num_heads: int, feedforward_channels: int, drop_rate: float, act: str
    ) -> None:
        super().__init__()
        self.attn = nn.MultiheadAttention(dims, num_heads, batch_first=True)
        self.mlp = nn.Sequential(
            nn.Linear(dims, feedforward_channels),
            build_activation(dict(type=act)),
            nn.Dropout(drop_rate),
            nn.Linear(feedforward_channels, dims),
        )
        self.norms = nn.ModuleList(nn.LayerNorm(dims) for _ in range(2))
        self.drop = nn.Dropout(drop_rate)

    def forward(self, x: Tensor, position: Tensor) -> Tensor:
        """Elements (B, N, C) and their positions (N, C) -> elements."""
        positioned = x + position
        x = self.norms[0](
            x + self.drop(self.attn(positioned, positioned, x, need_weights=False)[0])
        )
        return self.norms[1](x + self.drop(self.mlp(x)))
