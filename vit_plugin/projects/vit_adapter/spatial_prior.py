"""The spatial prior module of ViT-Adapter: its CNN."""

import math
from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from vit_plugin.models.layers.numerics import build_map_norm


class SpatialPrior(nn.Module):
    """A small CNN next to the transformer (ViT-Adapter, arXiv:2205.08534, Section 3.2).

    It begins with the stem of a ResNet with three 3 x 3 convolutions. The names of the parameters
    are the authors'.

    Args:
        in_channels: channels of the image.
        width: channels at stride 4. There are twice as many at stride 8, and four times as many at
            strides 16 and 32.
        embed_dims: channels of every output.
        norm_cfg: the norms.
        with_finest: whether to return the map of stride 4.

    Shape: images (B, in_channels, H, W) -> maps (B, embed_dims, ceil(H / s), ceil(W / s)) for s in
    4, 8, 16, 32, or in 8, 16, 32.
    """

    def __init__(
        self,
        in_channels: int,
        width: int,
        embed_dims: int,
        norm_cfg: Mapping[str, Any],
        with_finest: bool = True,
    ) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            *conv_norm_relu(in_channels, width, 2, norm_cfg),
            *conv_norm_relu(width, width, 1, norm_cfg),
            *conv_norm_relu(width, width, 1, norm_cfg),
            nn.MaxPool2d(3, 2, padding=1),
        )
        self.conv2 = nn.Sequential(*conv_norm_relu(width, 2 * width, 2, norm_cfg))
        self.conv3 = nn.Sequential(*conv_norm_relu(2 * width, 4 * width, 2, norm_cfg))
        self.conv4 = nn.Sequential(*conv_norm_relu(4 * width, 4 * width, 2, norm_cfg))
        self.fc1 = nn.Conv2d(width, embed_dims, 1) if with_finest else None
        self.fc2 = nn.Conv2d(2 * width, embed_dims, 1)
        self.fc3 = nn.Conv2d(4 * width, embed_dims, 1)
        self.fc4 = nn.Conv2d(4 * width, embed_dims, 1)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                init_conv(module)

    def forward(self, images: Tensor) -> list[Tensor]:
        x1 = self.stem(images)
        x2 = self.conv2(x1)
        x3 = self.conv3(x2)
        x4 = self.conv4(x3)
        projections = zip((self.fc1, self.fc2, self.fc3, self.fc4), (x1, x2, x3, x4), strict=True)
        return [projection(x) for projection, x in projections if projection is not None]


def conv_norm_relu(
    in_channels: int, channels: int, stride: int, norm_cfg: Mapping[str, Any]
) -> list[nn.Module]:
    """A 3 x 3 convolution, its norm and ReLU. A map of h rows becomes ceil(h / stride) rows."""
    return [
        nn.Conv2d(in_channels, channels, 3, stride, padding=1, bias=False),
        build_map_norm(norm_cfg, channels),
        nn.ReLU(inplace=True),
    ]


def init_conv(conv: nn.Conv2d | nn.ConvTranspose2d) -> None:
    """Initialize a convolution as the authors of ViT-Adapter do: normal, by its fan-out."""
    fan_out = math.prod(conv.kernel_size) * conv.out_channels // conv.groups
    nn.init.normal_(conv.weight, std=math.sqrt(2 / fan_out))
    if conv.bias is not None:
        nn.init.zeros_(conv.bias)
