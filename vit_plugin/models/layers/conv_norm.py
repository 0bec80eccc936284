"""A convolution with its norm and activation."""

from collections.abc import Callable, Mapping
from typing import Any

from torch import nn

from .numerics import build_activation, build_map_norm


def padded_conv(in_channels: int, out_channels: int, kernel_size: int, stride: int) -> nn.Conv2d:
    """A convolution without a bias that keeps the size of the map if its stride is 1."""
    return nn.Conv2d(
        in_channels, out_channels, kernel_size, stride, padding=kernel_size // 2, bias=False
    )


class ConvNorm(nn.Sequential):
    """A convolution, its norm and an activation.

    Args:
        in_channels, out_channels, kernel_size, stride: arguments of ``conv``.
        norm_cfg: the norm.
        act: type of the activation.
        conv: makes the convolution.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        norm_cfg: Mapping[str, Any],
        act: str = 'Identity',
        stride: int = 1,
        conv: Callable[..., nn.Module] = padded_conv,
    ) -> None:
        super().__init__()
        self.conv = conv(in_channels, out_channels, kernel_size, stride)
        self.norm = build_map_norm(norm_cfg, out_channels)
        self.act = build_activation(dict(type=act))
