"""A convolution with its norm and activation, as necks have it."""

from collections.abc import Mapping
from typing import Any

from torch import nn

from .numerics import build_activation, build_map_norm


class ConvNorm(nn.Sequential):
    """A convolution, its norm and an activation. Without a stride, the map keeps its size."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        norm_cfg: Mapping[str, Any],
        act: str = 'Identity',
        stride: int = 1,
    ) -> None:
        super().__init__()
        self.conv = nn.Conv2d(
            in_channels, out_channels, kernel_size, stride, kernel_size // 2, bias=False
        )
        self.norm = build_map_norm(norm_cfg, out_channels)
        self.act = build_activation(dict(type=act))
