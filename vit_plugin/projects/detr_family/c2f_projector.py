"""The projector of LW-DETR and RF-DETR, a neck between a plain ViT and a DETR decoder.

It resizes the maps of several ViT blocks to each wanted scale, concatenates them, and fuses them
with YOLOv8's C2f block.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any

import torch
from mmengine.model import BaseModule
from pydantic import AfterValidator, Field
from torch import Tensor, nn

from vit_plugin.arguments.fields import Depth, InitConfig, NormConfig, PositiveInt, PositiveInts
from vit_plugin.errors import ConfigError
from vit_plugin.models.layers.conv_norm import ConvNorm
from vit_plugin.models.layers.numerics import build_map_norm
from vit_plugin.models.necks.simple_fpn import check_power_of_two
from vit_plugin.registry import MODELS

Scale = Annotated[float, Field(ge=0.5, le=2), AfterValidator(check_power_of_two)]
Scales = Annotated[Sequence[Scale], Field(min_length=1)]


class C2f(nn.Module):
    """YOLOv8's C2f block: (B, in_channels, h, w) -> (B, out_channels, h, w).

    Half of a projection passes through chained bottlenecks without shortcuts. The outputs of all
    bottlenecks are concatenated with both halves.
    """

    def __init__(
        self, in_channels: int, out_channels: int, num_blocks: int, norm_cfg: Mapping[str, Any]
    ) -> None:
        super().__init__()
        width = out_channels // 2
        conv = partial(ConvNorm, norm_cfg=norm_cfg, act='SiLU')
        self.conv1 = conv(in_channels, 2 * width, 1)
        self.bottlenecks = nn.ModuleList(
            nn.Sequential(conv(width, width, 3), conv(width, width, 3)) for _ in range(num_blocks)
        )
        self.conv2 = conv((2 + num_blocks) * width, out_channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        parts = list(self.conv1(x).chunk(2, dim=1))
        for bottleneck in self.bottlenecks:
            parts.append(bottleneck(parts[-1]))
        return self.conv2(torch.cat(parts, dim=1))


class C2fScale(nn.Module):
    """One output of the projector: all maps, resized to its scale, concatenated and fused."""

    def __init__(
        self,
        in_channels: Sequence[int],
        out_channels: int,
        scale: float,
        num_blocks: int,
        norm_cfg: Mapping[str, Any],
        widest: int | None,
    ) -> None:
        super().__init__()
        resized = [_resize(channels, scale, norm_cfg, widest) for channels in in_channels]
        self.resize = nn.ModuleList(layer for layer, _ in resized)
        self.c2f = C2f(sum(channels for _, channels in resized), out_channels, num_blocks, norm_cfg)
        self.norm = build_map_norm(dict(type='LN2d', eps=1e-6), out_channels)

    def forward(self, maps: Sequence[Tensor]) -> Tensor:
        return self.norm(
            self.c2f(
                torch.cat([layer(x) for layer, x in zip(self.resize, maps, strict=True)], dim=1)
            )
        )


def _resize(
    channels: int, scale: float, norm_cfg: Mapping[str, Any], widest: int | None
) -> tuple[nn.Sequential, int]:
    """The layers that resize a map to a scale, and the number of channels after them."""
    layers: list[nn.Module] = []
    if scale == 2:
        if widest and channels > widest:
            layers.append(ConvNorm(channels, channels // 2, 1, norm_cfg, 'ReLU'))
            channels //= 2
        layers.append(nn.ConvTranspose2d(channels, channels // 2, 2, 2))
        channels //= 2
    elif scale == 0.5:
        layers.append(ConvNorm(channels, channels, 3, norm_cfg, 'ReLU', stride=2))
    return nn.Sequential(*layers), channels


@MODELS.register_module()
class C2fProjector(BaseModule):
    """The projector of LW-DETR (arXiv:2406.03459, Section 3.1) and RF-DETR.

    Args:
        in_channels: channels of each of the backbone's maps.
        out_channels: channels of every output.
        scales: for each output, its size relative to the maps: 2, 1 or 0.5. RF-DETR has only
            1, except for its first large model.
        num_blocks: number of bottlenecks of each output.
        norm_cfg: the norms of the convolutions. RF-DETR has ``dict(type='LN2d', eps=1e-6)``, and
            its port in transformers eps=1e-5.
        widest: maps with more channels than this get half of them before they are enlarged. None,
            as in RF-DETR: never.
        init_cfg: MMEngine's initialization config.

    Shape: a map (B, C, h, w) for each of ``in_channels``, all of one size -> a map (B,
    out_channels, scale * h, scale * w) for each scale.

    Raises:
        ConfigError: in the forward, if the maps do not have ``in_channels``.
    """

    def __init__(
        self,
        in_channels: PositiveInts,
        out_channels: PositiveInt = 256,
        scales: Scales = (1,),
        num_blocks: Depth = 3,
        norm_cfg: NormConfig = dict(type='BN'),
        widest: PositiveInt | None = 512,
        init_cfg: InitConfig = None,
    ) -> None:
        super().__init__(init_cfg)
        self.in_channels = list(in_channels)
        self.levels = nn.ModuleList(
            C2fScale(self.in_channels, out_channels, scale, num_blocks, norm_cfg, widest)
            for scale in scales
        )

    def forward(self, feats: Sequence[Tensor]) -> tuple[Tensor, ...]:
        if [x.shape[1] for x in feats if x.ndim == 4] != self.in_channels:
            raise ConfigError(
                f'C2fProjector got {[tuple(x.shape) for x in feats]} but takes maps (B, C, '
                f'h, w) of in_channels={self.in_channels}: change in_channels, or out_indices of '
                "the backbone, which must have out_type='featmap'."
            )
        return tuple(level(feats) for level in self.levels)
