"""A small ResNet for small images as a stem: convolutions at full resolution, then max-pools."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn
from typing_extensions import Unpack

from vit_plugin.arguments.fields import PositiveInt
from vit_plugin.errors import ConfigError
from vit_plugin.registry import MODELS

from ..layers.numerics import Numerics, build_activation, build_map_norm
from ..layers.std_conv import StdConv2d
from .layer_maps import LayerMaps
from .stem import Stem, StemOptions

Widths = Annotated[Sequence[PositiveInt], Field(min_length=2, max_length=6)]


def cosines(size: int) -> Tensor:
    """Matrix (size, size) of the orthonormal discrete cosine transform, one row per frequency."""
    i = torch.arange(size)
    rows = torch.cos(torch.pi / size * (i + 0.5) * i[:, None]) * (2 / size) ** 0.5
    rows[0] *= 0.5**0.5
    return rows


class WhitenedRoot(nn.Module):
    """Fixed filters that decorrelate the colors of 2 x 2 pixels.

    They are the cosine transform of channels, rows and columns, which is close to the principal
    components of natural images. A BatchNorm without weights gives each output the variance 1. Each
    output and its negative go through the activation. This is the whitened first convolution of K.
    Jordan (arXiv:2404.00498, Section 3.2), with batch statistics instead of statistics gathered
    before training. The last row and column of the image are repeated, so that the map keeps its
    size.

    Shape: (B, C, H, W) -> (B, 8 C, H, W).
    """

    filters: Tensor

    def __init__(self, in_channels: int, act_cfg: Mapping[str, Any]) -> None:
        super().__init__()
        self.register_buffer('filters', self._filters(in_channels), persistent=False)
        self.norm = nn.BatchNorm2d(4 * in_channels, eps=5e-4, affine=False)
        self.act = build_activation(act_cfg)

    @staticmethod
    def _filters(in_channels: int) -> Tensor:
        axes = cosines(in_channels), cosines(2), cosines(2)
        return torch.einsum('ai,bj,ck->abcijk', *axes).reshape(-1, in_channels, 2, 2)

    def reset_parameters(self) -> None:
        """Compute the filters again, since ``to_empty`` leaves a buffer without values."""
        self.filters.copy_(self._filters(self.filters.shape[1]))

    def forward(self, x: Tensor) -> Tensor:
        filters = self.filters.to(x.dtype)  # sharding casts inputs and parameters, but not buffers
        x = self.norm(F.conv2d(F.pad(x, (0, 1, 0, 1), mode='replicate'), filters))
        return self.act(torch.cat((x, -x), dim=1))


class PooledStage(nn.Module):
    """A 3 x 3 convolution, a max-pool by 2, and another 3 x 3 convolution.

    The first convolution is at full resolution. An odd side is padded at its end.

    Args:
        skip: whether the second convolution is added to its input. If not, both start near an
            identity: a Dirac kernel, up to the mean and scale of the standardization.

    Shape: (B, C_in, H, W) -> (B, C_out, ceil(H/2), ceil(W/2)).
    """

    def __init__(self, in_channels: int, out_channels: int, skip: bool, numerics: Numerics) -> None:
        super().__init__()
        self.skip = skip
        self.conv1 = StdConv2d(in_channels, out_channels, 3, **numerics.stem_conv_cfg)
        self.norm1 = build_map_norm(numerics.stem_norm_cfg, out_channels)
        self.conv2 = StdConv2d(out_channels, out_channels, 3, **numerics.stem_conv_cfg)
        self.norm2 = build_map_norm(numerics.stem_norm_cfg, out_channels)
        self.act = build_activation(numerics.act_cfg)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Without a skip connection, start near an identity.

        Filter i passes channel i, for the first ``in_channels`` filters.
        """
        if not self.skip:
            for conv in (self.conv1, self.conv2):
                nn.init.dirac_(conv.weight[: conv.in_channels].data)

    def forward(self, x: Tensor) -> Tensor:
        # Pool before the norm, which then gets only a quarter of the elements.
        x = F.max_pool2d(self.conv1(x), 2, ceil_mode=True)
        x = self.act(self.norm1(x))
        y = self.act(self.norm2(self.conv2(x)))
        return x + y if self.skip else y


@MODELS.register_module()
class PooledResNetEmbed(Stem):
    """A ResNet that halves its maps by max-pools, then patches of the last map.

    It learns from small images in few epochs, like DAWNBench's ResNet-9 (Page 2018, "How to train
    your ResNet"), on which its stages are modeled. The convolutions have standardized filters, as
    those of :class:`~vit_plugin.models.ResNetEmbed`. The activation is the encoder's.

    Args:
        in_channels, embed_dims, patch_size, **kwargs: see :class:`Stem`.
        channels: channels of the root, a 3 x 3 convolution at full resolution, and of each stage
            after it. A whitened root has ``8 * in_channels``.
        skip: whether the second convolution of each stage is residual. If not, the convolutions of
            the stages start near an identity (arXiv:2404.00498, Section 3.3), see
            :class:`PooledStage`.
        whitened: whether the root is a fixed :class:`WhitenedRoot` instead of a convolution.
        channels_last: whether the maps have this memory format. On a CPU it makes max-pools several
            times faster, and GroupNorm several times slower: take it with BatchNorm.
        with_root: whether the map of the root, of stride 1, comes before those of the stages.

    Raises:
        ConfigError: if a whitened root has another number of channels than ``8 * in_channels``.
    """

    def __init__(
        self,
        in_channels: PositiveInt = 3,
        embed_dims: PositiveInt = 768,
        channels: Widths = (32, 64, 128),
        patch_size: PositiveInt = 1,
        skip: bool = True,
        whitened: bool = False,
        channels_last: bool = False,
        with_root: bool = False,
        **kwargs: Unpack[StemOptions],
    ) -> None:
        root, first_map = channels[0], 0 if with_root else 1
        if whitened and root != 8 * in_channels:
            raise ConfigError(
                f'patch_embed: a whitened root has {8 * in_channels} channels, and channels '
                f'begins with {root}; change it, or leave out whitened=True.'
            )
        super().__init__(
            in_channels,
            embed_dims,
            patch_size,
            **kwargs,
            feature_strides=[2**i for i in range(first_map, len(channels))],
            feature_channels=channels[first_map:],
        )
        self.first_map = first_map
        if whitened:
            first: nn.Module = WhitenedRoot(in_channels, self.numerics.act_cfg)
        else:
            first = nn.Sequential(
                StdConv2d(in_channels, root, 3, **self.numerics.stem_conv_cfg),
                build_map_norm(self.numerics.stem_norm_cfg, root),
                build_activation(self.numerics.act_cfg),
            )
        stages = [PooledStage(*sizes, skip, self.numerics) for sizes in pairwise(channels)]
        self.backbone = LayerMaps([first, *stages], self.with_cp)
        self.memory_format = torch.channels_last if channels_last else torch.preserve_format
        # A whitened root has no parameters, and so no depth.
        self.depths = [f'backbone.{i}.' for i in range(1 if whitened else 0, len(channels))]

    def features(self, images: Tensor) -> tuple[Tensor, ...]:
        return self.backbone(images.to(memory_format=self.memory_format))[self.first_map :]
