"""A small ResNet for small images as a stem: convolutions at full resolution, then max-pools."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn
from typing_extensions import Unpack

from vit_plugin.arguments.fields import PositiveInt
from vit_plugin.errors import ConfigError
from vit_plugin.registry import MODELS

from ..layers.numerics import AnyNumerics, Numerics, build_activation, build_map_norm, get_numerics
from ..layers.recompute import Recompute
from ..layers.std_conv import StdConv2d
from .stem import Stem, StemOptions

Widths = Annotated[Sequence[PositiveInt], Field(min_length=2, max_length=6)]


class PooledStage(nn.Module):
    """A 3 x 3 convolution whose map is max-pooled by 2, and maybe a residual 3 x 3 convolution on the pooled map.

    The first convolution sees the map before it is made smaller. An odd side is padded at its end.

    Shape: (B, C_in, H, W) -> (B, C_out, ceil(H/2), ceil(W/2)).
    """

    def __init__(self, in_channels: int, out_channels: int, residual: bool, numerics: Numerics) -> None:
        super().__init__()
        self.residual = residual
        self.conv1 = StdConv2d(in_channels, out_channels, 3, **numerics.stem_conv_cfg)
        self.norm1 = build_map_norm(numerics.stem_norm_cfg, out_channels)
        if residual:
            self.conv2 = StdConv2d(out_channels, out_channels, 3, **numerics.stem_conv_cfg)
            self.norm2 = build_map_norm(numerics.stem_norm_cfg, out_channels)
        self.act = build_activation(numerics.act_cfg)

    def forward(self, x: Tensor) -> Tensor:
        x = F.max_pool2d(self.conv1(x), 2, ceil_mode=True)  # before the norm, which then has a quarter to compute
        x = self.act(self.norm1(x))
        return x + self.act(self.norm2(self.conv2(x))) if self.residual else x


@MODELS.register_module()
class PooledResNetEmbed(Stem):
    """A ResNet that halves its maps by max-pools, then patches of the last map.

    It learns small images in few epochs, as the ResNet-9 of DAWNBench does (Page 2018, "How to train your ResNet"), on
    which its stages are modelled. The convolutions have standardised filters, as those of
    :class:`~vit_plugin.models.ResNetEmbed`. The activation is the encoder's.

    Args:
        in_channels, embed_dims, patch_size, numerics, with_cp, **kwargs: see :class:`Stem`.
        channels: channels of the root, a 3 x 3 convolution of the entire image, and of each stage after it.
        residual: whether each stage has its residual convolution. Default: all have.
        channels_last: whether the maps have this memory format. On a CPU it makes max-pools several times faster, and
            GroupNorm several times slower: take it with BatchNorm.

    Raises:
        ConfigError: if ``residual`` does not have one value for each stage.
    """

    def __init__(  # type: ignore[misc]  # it names some of StemOptions itself
            self, in_channels: PositiveInt = 3, embed_dims: PositiveInt = 768, channels: Widths = (32, 64, 128),
            patch_size: PositiveInt = 1, numerics: AnyNumerics = 'authors', with_cp: Recompute = False,
            residual: Sequence[bool] | None = None, channels_last: bool = False, **kwargs: Unpack[StemOptions]) -> None:
        numerics = get_numerics(numerics)
        root, *widths = channels
        residual = [True] * len(widths) if residual is None else residual
        if len(residual) != len(widths):
            raise ConfigError(f'patch_embed: residual has {len(residual)} values for {len(widths)} stages; give one '
                              'for each, or leave it out.')
        super().__init__(in_channels, embed_dims, patch_size, numerics, with_cp, **kwargs,
                         feature_strides=[2**(i + 1) for i in range(len(widths))], feature_channels=widths)
        self.backbone = nn.Sequential(
            nn.Sequential(StdConv2d(in_channels, root, 3, **numerics.stem_conv_cfg),
                          build_map_norm(numerics.stem_norm_cfg, root), build_activation(numerics.act_cfg)),
            *(PooledStage(*sizes, again, numerics) for sizes, again in zip(pairwise(channels), residual, strict=True)))
        self.memory_format = torch.channels_last if channels_last else torch.preserve_format
        self.depths = [f'backbone.{i}.' for i in range(len(channels))]

    def features(self, images: Tensor) -> tuple[Tensor, ...]:
        return tuple(self.maps_of(self.backbone, images.to(memory_format=self.memory_format))[1:])
