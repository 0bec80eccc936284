"""A few strided convolutions as a stem, as in MobileCLIP."""

import math
from collections.abc import Sequence
from typing import Annotated

from pydantic import Field
from timm.models.vision_transformer_hybrid import ConvStem
from torch import Tensor, nn
from typing_extensions import Unpack

from vit_plugin.arguments.fields import PositiveInt
from vit_plugin.errors import ConfigError
from vit_plugin.registry import MODELS

from ..layers.recompute import Recompute
from .stem import Stem, StemOptions, pad_to_multiple

Widths = Annotated[Sequence[PositiveInt], Field(min_length=1, max_length=5)]


@MODELS.register_module()
class ConvEmbed(Stem):
    """Convolutions that do not overlap, each but the last with BatchNorm and GELU (MobileCLIP-B, arXiv:2311.17049).

    The layers are timm's `ConvStem`. The image is padded at the right and bottom to a multiple of the stride.

    Args:
        channels: channels of each convolution's map.
        strides: stride of each convolution, which is also the side of its kernel.
        in_channels, embed_dims, patch_size, with_cp, **kwargs: see :class:`Stem`. By default, the last map holds the
            tokens, without a projection.

    Raises:
        ConfigError: if there are not as many strides as channels.
    """

    def __init__(  # type: ignore[misc]  # it names some of StemOptions itself
            self, in_channels: PositiveInt = 3, embed_dims: PositiveInt = 768,
            channels: Widths = (192, 192, 768), strides: Widths = (4, 2, 2), patch_size: PositiveInt = 1,
            with_cp: Recompute = False, projection: bool = False, **kwargs: Unpack[StemOptions]) -> None:
        if len(channels) != len(strides):
            raise ConfigError(f'patch_embed: channels has {len(channels)} values and strides has {len(strides)}; give '
                              'one of each for every convolution.')
        reductions = [math.prod(strides[:i + 1]) for i in range(len(strides))]
        super().__init__(in_channels, embed_dims, patch_size, with_cp=with_cp, projection=projection, **kwargs,
                         feature_strides=reductions, feature_channels=channels)
        self.backbone = ConvStem(in_channels, len(channels), tuple(channels), tuple(strides), tuple(strides), 0,
                                 act_layer=nn.GELU)
        self.depths = ['backbone.'] if projection else []

    def features(self, images: Tensor) -> tuple[Tensor, ...]:
        return tuple(self.maps_of(self.backbone, pad_to_multiple(images, self.feature_strides[-1])))
