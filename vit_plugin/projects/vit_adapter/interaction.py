"""Attention between tokens and a feature pyramid (ViT-Adapter, arXiv:2205.08534, Section 3.3).

A pyramid is a tensor (B, elements, C) of several maps, flattened and concatenated. The ``levels``
that go with it are their sizes and strides.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Any

import torch
from pydantic import Field
from torch import Tensor, nn
from typing_extensions import TypedDict

from vit_plugin.arguments.fields import PositiveInt
from vit_plugin.errors import ConfigError
from vit_plugin.models.layers.deformable_attention import DeformableAttention, MapLevel
from vit_plugin.models.layers.drop_path import build_drop_path
from vit_plugin.models.layers.recompute import Recompute, recomputed

from .spatial_prior import init_conv

ADAPTER_NORM_EPS = 1e-6


class AttentionCfg(TypedDict, total=False):
    """The deformable attention of a :class:`~vit_plugin.models.ViTAdapter`.

    See :class:`DeformableAttention`.

    Attributes:
        num_heads: number of heads. Default: one for each 64 channels.
        num_points: number of points of each head in each map. Default: 4.
        value_ratio: width of the values, as a fraction of the tokens'. Default: 0.5, the authors'
            ratio for B and L. Theirs is 1 for Ti and S.
    """

    num_heads: PositiveInt
    num_points: PositiveInt
    value_ratio: Annotated[float, Field(gt=0, le=4)]


def centers(levels: Sequence[MapLevel], like: Tensor) -> Tensor:
    """The centers of the elements of all levels in pixels (elements, 2), at least in float32.

    ``like`` is a tensor on the device where they are needed.
    """
    like = like.new_empty(0, dtype=torch.promote_types(like.dtype, torch.float32))
    return torch.cat([level.centers(like) for level in levels])


class Injector(nn.Module):
    """Patches attend to the pyramid (Eq. 1).

    Args:
        embed_dims: width of the tokens and of the pyramid.
        init_values: initial scale of the addition. With 0, the transformer starts unchanged.
        **attention: ``num_heads``, ``num_levels``, ``num_points`` and ``value_ratio``, see
            :class:`DeformableAttention`.
    """

    def __init__(self, embed_dims: int, init_values: float, **attention: Any) -> None:
        super().__init__()
        self.query_norm = nn.LayerNorm(embed_dims, eps=ADAPTER_NORM_EPS)
        self.feat_norm = nn.LayerNorm(embed_dims, eps=ADAPTER_NORM_EPS)
        self.attn = DeformableAttention(embed_dims, **attention)
        self.gamma = nn.Parameter(torch.full((embed_dims,), float(init_values)))

    def forward(
        self, patches: Tensor, patch_level: MapLevel, pyramid: Tensor, levels: Sequence[MapLevel]
    ) -> Tensor:
        """Patches (B, h*w, C) and the pyramid (B, elements, C) -> patches (B, h*w, C)."""
        points = centers([patch_level], patches)
        return patches + self.gamma * self.attn(
            self.query_norm(patches), points, self.feat_norm(pyramid), levels
        )


class Extractor(nn.Module):
    """The pyramid attends to the patches, followed by a feed-forward network (Eq. 2 and 3).

    Args:
        embed_dims: width of the tokens and of the pyramid.
        cffn_ratio: hidden width of the feed-forward network, as a fraction of ``embed_dims``. 0
            leaves it out.
        drop_path_rate: probability of skipping the feed-forward network.
        **attention: see :class:`Injector`.
    """

    def __init__(
        self, embed_dims: int, cffn_ratio: float, drop_path_rate: float, **attention: Any
    ) -> None:
        super().__init__()
        self.query_norm = nn.LayerNorm(embed_dims, eps=ADAPTER_NORM_EPS)
        self.feat_norm = nn.LayerNorm(embed_dims, eps=ADAPTER_NORM_EPS)
        self.attn = DeformableAttention(embed_dims, num_levels=1, **attention)
        hidden = int(embed_dims * cffn_ratio)
        self.ffn = ConvFFN(embed_dims, hidden) if hidden else None
        self.ffn_norm = nn.LayerNorm(embed_dims, eps=ADAPTER_NORM_EPS) if hidden else nn.Identity()
        self.drop_path = build_drop_path(drop_path_rate)

    def forward(
        self, pyramid: Tensor, levels: Sequence[MapLevel], patches: Tensor, patch_level: MapLevel
    ) -> Tensor:
        """The pyramid (B, elements, C) and patches (B, h*w, C) -> the pyramid (B, elements, C)."""
        points = centers(levels, pyramid)
        x = pyramid + self.attn(
            self.query_norm(pyramid), points, self.feat_norm(patches), [patch_level]
        )
        return x if self.ffn is None else x + self.drop_path(self.ffn(self.ffn_norm(x), levels))


class PyramidConv(nn.Module):
    """A depthwise 3 x 3 convolution, shared by all maps of a pyramid (B, elements, C)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.dwconv = nn.Conv2d(channels, channels, 3, padding=1, groups=channels)
        init_conv(self.dwconv)

    def forward(self, pyramid: Tensor, levels: Sequence[MapLevel]) -> Tensor:
        return torch.cat(
            [self.dwconv(x).flatten(2).transpose(1, 2) for x in to_maps(pyramid, levels)], dim=1
        )


class ConvFFN(nn.Module):
    """A feed-forward network with a depthwise convolution before its activation."""

    def __init__(self, embed_dims: int, hidden: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(embed_dims, hidden)
        self.dwconv = PyramidConv(hidden)
        self.act = nn.GELU()
        self.fc2 = nn.Linear(hidden, embed_dims)
        for layer in (self.fc1, self.fc2):
            nn.init.trunc_normal_(layer.weight, std=0.02)
            nn.init.zeros_(layer.bias)

    def forward(self, pyramid: Tensor, levels: Sequence[MapLevel]) -> Tensor:
        return self.fc2(self.act(self.dwconv(self.fc1(pyramid), levels)))


def to_pyramid(
    maps: Sequence[Tensor], strides: Sequence[int], embeds: Tensor
) -> tuple[Tensor, list[MapLevel]]:
    """Maps (B, C, h, w) and a vector (C,) for each -> a pyramid (B, elements, C) and its levels."""
    levels = [
        MapLevel((x.shape[-2], x.shape[-1]), stride)
        for x, stride in zip(maps, strides, strict=True)
    ]
    parts = [x.flatten(2).transpose(1, 2) + embed for x, embed in zip(maps, embeds, strict=True)]
    return torch.cat(parts, dim=1), levels


def to_maps(pyramid: Tensor, levels: Sequence[MapLevel]) -> list[Tensor]:
    """A pyramid (B, elements, C) -> its maps (B, C, h, w)."""
    parts = pyramid.split([level.size[0] * level.size[1] for level in levels], dim=1)
    return [
        part.transpose(1, 2).unflatten(2, level.size).contiguous()
        for part, level in zip(parts, levels, strict=True)
    ]


class Interaction(nn.Module):
    """Interaction around a group of transformer blocks: injector before, extractors after.

    Args:
        embed_dims: width of the tokens and of the pyramid.
        num_levels: number of maps in the pyramid.
        num_extractors: number of extractors.
        init_values: see :class:`Injector`. None leaves out the injector.
        with_cp: activation checkpointing of injector and extractors.
        cffn_ratio, drop_path_rate: see :class:`Extractor`.
        **attention: ``num_heads``, ``num_points`` and ``value_ratio``, see
            :class:`DeformableAttention`.
    """

    def __init__(
        self,
        embed_dims: int,
        num_levels: int,
        num_extractors: int,
        init_values: float | None,
        with_cp: Recompute,
        cffn_ratio: float,
        drop_path_rate: float,
        **attention: Any,
    ) -> None:
        super().__init__()
        self.with_cp = with_cp
        self.injector = (
            None
            if init_values is None
            else Injector(embed_dims, init_values, num_levels=num_levels, **attention)
        )
        extractors = [
            Extractor(embed_dims, cffn_ratio, drop_path_rate, **attention)
            for _ in range(num_extractors)
        ]
        # The authors have these two names.
        self.extractor, self.extra_extractors = extractors[0], nn.ModuleList(extractors[1:])

    def inject(
        self, x: Tensor, patch_level: MapLevel, pyramid: Tensor, levels: Sequence[MapLevel]
    ) -> Tensor:
        """Tokens (B, prefix + h*w, C) -> same shape. Only the patches change."""
        if self.injector is None:
            return x
        h, w = patch_level.size
        prefix, patches = x[:, : x.shape[1] - h * w], x[:, x.shape[1] - h * w :]
        patches = recomputed(self.with_cp, self.injector, patches, patch_level, pyramid, levels)
        return torch.cat((prefix, patches), dim=1)

    def extract(
        self, pyramid: Tensor, levels: Sequence[MapLevel], patches: Tensor, patch_level: MapLevel
    ) -> Tensor:
        """The pyramid (B, elements, C) and patches (B, h*w, C) -> the pyramid (B, elements, C)."""
        for extractor in (self.extractor, *self.extra_extractors):
            pyramid = recomputed(self.with_cp, extractor, pyramid, levels, patches, patch_level)
        return pyramid


def block_groups(
    interactions: int | Sequence[int], num_layers: int, last_blocks: Sequence[int]
) -> list[tuple[int, int]]:
    """The blocks of each group, as (first, last + 1).

    Args:
        interactions: the number of groups, which divides the number of blocks, or the last block
            of each group.
        num_layers: the number of blocks.
        last_blocks: the last block of each group, as indices from 0. It is only used if
            ``interactions`` lists blocks, which may be negative.

    Raises:
        ConfigError: if the number of groups does not divide the blocks.
    """
    if not isinstance(interactions, int):
        return list(pairwise((0, *(last + 1 for last in last_blocks))))
    if num_layers % interactions:
        fitting = [i for i in range(1, num_layers + 1) if num_layers % i == 0]
        raise ConfigError(
            f'ViTAdapter: interactions={interactions} does not divide the {num_layers} blocks of '
            f'the backbone; take one of {", ".join(map(str, fitting))}, or list the last '
            'block of each group, as in interactions=(4, 11, 17, 23).'
        )
    size = num_layers // interactions
    return [(i * size, (i + 1) * size) for i in range(interactions)]
