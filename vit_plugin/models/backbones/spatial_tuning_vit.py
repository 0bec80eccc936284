"""The backbone of DEIMv2: a Vision Transformer and a small CNN, whose maps are joined."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_plugin.arguments.fields import NormConfig, PositiveInt
from vit_plugin.errors import ConfigError
from vit_plugin.registry import MODELS

from ..layers.conv_norm import ConvNorm
from ..layers.outputs import resample
from .vit import VisionTransformer

STRIDES = (8, 16, 32)


class SpatialTuning(nn.Module):
    """The spatial tuning adapter (arXiv:2509.20787, Section 3): details of the image join the maps of a transformer.

    Shape: images (B, in_channels, H, W) and three maps (B, embed_dims, h, w) of one stride -> maps
    (B, out_channels, ceil(H / s), ceil(W / s)) for s in 8, 16, 32.
    """

    def __init__(self, in_channels: int, width: int, embed_dims: int, out_channels: int,
                 norm_cfg: Mapping[str, Any]) -> None:
        super().__init__()
        self.stem = nn.Sequential(ConvNorm(in_channels, width, 3, norm_cfg, 'GELU', stride=2), nn.MaxPool2d(3, 2, 1))
        widths = (width, 2 * width, 4 * width, 4 * width)
        self.stages = nn.ModuleList(ConvNorm(widths[i], widths[i + 1], 3, norm_cfg, stride=2) for i in range(3))
        self.fuse = nn.ModuleList(ConvNorm(embed_dims + own, out_channels, 1, norm_cfg) for own in widths[1:])

    def forward(self, images: Tensor, maps: Sequence[Tensor], stride: int) -> tuple[Tensor, ...]:
        details = self.stem(images)
        outs: list[Tensor] = []
        for stage, fuse, x, new_stride in zip(self.stages, self.fuse, maps, STRIDES, strict=True):
            details = stage(F.gelu(details) if outs else details)
            outs.append(fuse(torch.cat((resample(x, stride, new_stride, details.shape), details), dim=1)))
        return tuple(outs)


@MODELS.register_module()
class SpatialTuningViT(VisionTransformer):
    """A :class:`VisionTransformer` with DEIMv2's spatial tuning adapter (arXiv:2509.20787, Section 3).

    A few convolutions of the image bring details to the maps of three depths, which are resized to strides 8, 16 and
    32. It costs a fraction of a :class:`ViTAdapter`, and suits transformers of the width of S and less.

    Args:
        tuning_width: channels of the first convolution.
        out_channels: channels of every output. Default: the width of the transformer.
        norm_cfg: the norms of the convolutions.
        **kwargs: see :class:`VisionTransformer`, without ``out_type``. ``out_indices`` are three blocks, or one whose
            map is taken three times.

    Shape: images (B, in_channels, H, W) -> three maps (B, out_channels, ceil(H / s), ceil(W / s)) for s in 8, 16, 32.

    Raises:
        ConfigError: for an ``out_type``, for another number of ``out_indices``, or if the patches vary.
    """

    def __init__(self, tuning_width: PositiveInt = 16, out_channels: PositiveInt | None = None,
                 norm_cfg: NormConfig = dict(type='SyncBN'), **kwargs: Any) -> None:
        if 'out_type' in kwargs:
            raise ConfigError('SpatialTuningViT: out_type is no option, since the outputs are maps; leave it out.')
        super().__init__(**kwargs, out_type='featmap')
        if len(self.out_indices) not in (1, len(STRIDES)):
            raise ConfigError(f'SpatialTuningViT: out_indices={self.out_indices} must be three blocks, for the maps of '
                              'strides 8, 16 and 32, or one for all of them.')
        self.out_channels = out_channels or self.embed_dims
        self.tuning = SpatialTuning(self.in_channels, tuning_width, self.embed_dims, self.out_channels, norm_cfg)

    def forward(self, images: Tensor) -> tuple[Tensor, ...]:
        x, grid, _ = self.patch_embed(images)  # (B, h*w, C)
        maps = self.encode(x, grid)
        images = images.expand(-1, self.in_channels, -1, -1)  # as the stem takes grey images
        return self.tuning(images, maps if len(maps) > 1 else maps * len(STRIDES), self.patch_embed.stride)

    @property
    def channels(self) -> tuple[int, ...]:
        """Channels of each output."""
        return (self.out_channels, ) * len(STRIDES)

    @property
    def strides(self) -> tuple[int, ...]:
        """Stride of each output, in pixels."""
        return STRIDES

    def parts_to_shard(self) -> list[nn.Module]:
        """The modules that sharding gathers one at a time."""
        return [*super().parts_to_shard(), self.tuning]
