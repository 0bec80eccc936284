"""A few strided convolutions as a stem."""

import math
from collections.abc import Sequence
from typing import Annotated

from pydantic import Field
from timm.models.vision_transformer_hybrid import ConvStem
from torch import Tensor
from typing_extensions import Unpack

from vit_plugin.arguments.fields import PositiveInt
from vit_plugin.errors import ConfigError
from vit_plugin.registry import MODELS

from ..layers.numerics import build_activation
from .layer_maps import LayerMaps
from .padding import pad_to_multiple
from .stem import Stem, StemOptions

Widths = Annotated[Sequence[PositiveInt], Field(min_length=1, max_length=5)]


@MODELS.register_module()
class ConvEmbed(Stem):
    """Convolutions, each but the last with BatchNorm and an activation.

    By default they do not overlap, as in MobileCLIP-B (arXiv:2311.17049). With ``channels=(24, 48,
    96, 192, 384)``, ``strides=(2, 2, 2, 2, 1)`` and ``kernel_sizes=(3, 3, 3, 3, 1)`` they do, as in
    "Early convolutions help transformers see better" (arXiv:2106.14881), which has ReLU. The layers
    are timm's `ConvStem`. The image is padded at the right and bottom to a multiple of the stride.

    Args:
        channels: channels of each convolution's map.
        strides: stride of each convolution.
        kernel_sizes: side of the kernel of each convolution. Default: the strides.
        conv_act: type of the activation.
        in_channels, embed_dims, patch_size, **kwargs: see :class:`Stem`. By default, the
            last map holds the tokens, without a projection.

    Raises:
        ConfigError: if there are not as many strides and kernels as channels, or if a kernel does
            not fit its stride.
    """

    def __init__(
        self,
        in_channels: PositiveInt = 3,
        embed_dims: PositiveInt = 768,
        channels: Widths = (192, 192, 768),
        strides: Widths = (4, 2, 2),
        kernel_sizes: Widths | None = None,
        conv_act: str = 'GELU',
        patch_size: PositiveInt = 1,
        **kwargs: Unpack[StemOptions],
    ) -> None:
        kernels = _checked_kernels(channels, strides, kernel_sizes)
        padding = tuple(
            (kernel - 1) // 2 if kernel > stride else 0
            for kernel, stride in zip(kernels, strides, strict=True)
        )
        reductions = [math.prod(strides[: i + 1]) for i in range(len(strides))]
        kwargs.setdefault('projection', False)
        super().__init__(
            in_channels,
            embed_dims,
            patch_size,
            **kwargs,
            feature_strides=reductions,
            feature_channels=channels,
        )
        layers = ConvStem(
            in_channels,
            len(channels),
            tuple(channels),
            tuple(kernels),
            tuple(strides),
            padding,
            act_layer=type(build_activation(dict(type=conv_act))),
        )
        self.backbone = LayerMaps(layers, self.with_cp)
        # Without a projection, the convolutions have the depth of the tokens.
        self.depths = ['backbone.'] if kwargs['projection'] else []

    def features(self, images: Tensor) -> tuple[Tensor, ...]:
        return self.backbone(pad_to_multiple(images, self.feature_strides[-1]))


def _checked_kernels(
    channels: Sequence[int], strides: Sequence[int], kernel_sizes: Sequence[int] | None
) -> Sequence[int]:
    """The kernels, by default as large as the strides. For the errors see :class:`ConvEmbed`."""
    kernels = kernel_sizes or strides
    if not len(channels) == len(strides) == len(kernels):
        raise ConfigError(
            f'patch_embed: channels has {len(channels)} values, strides has {len(strides)} and '
            f'kernel_sizes has {len(kernels)}; give one of each for every convolution.'
        )
    if any(
        kernel < stride or (stride == 1 and kernel % 2 == 0)
        for kernel, stride in zip(kernels, strides, strict=True)
    ):
        raise ConfigError(
            f'patch_embed: kernel_sizes={kernel_sizes} do not fit strides={strides}; give '
            'kernels at least as large as their strides, and odd where the stride is 1.'
        )
    return kernels
