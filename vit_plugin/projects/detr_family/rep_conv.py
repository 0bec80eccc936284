"""RepVGG's convolutions with two branches, and the blocks of RT-DETR, D-FINE and DEIMv2 with them.

:mod:`vit_plugin.passes` fuses the branches into one convolution for inference.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_plugin.models.layers.conv_norm import ConvNorm

Conv = Callable[..., ConvNorm]


class RepConv(nn.Module):
    """A 3 x 3 and a 1 x 1 convolution, each with its norm, summed (RepVGG, arXiv:2101.03697).

    Args:
        channels: channels of the map, which keeps its size.
        conv: makes a convolution with its norm, from the arguments of ``ConvNorm``.
        act: type of the activation.
    """

    def __init__(self, channels: int, conv: Conv, act: str) -> None:
        super().__init__()
        self.conv1, self.conv2 = conv(channels, channels, 3), conv(channels, channels, 1)
        # The activation that `conv` builds for this type; the convolution is dropped.
        self.act = conv(channels, channels, 1, act=act).act

    def forward(self, x: Tensor) -> Tensor:
        return self.act(self.conv1(x) + self.conv2(x))

    @torch.no_grad()
    def fused_twins(self) -> nn.Module:
        """One convolution and the activation, which compute the same in eval mode.

        Norms that are not fixed factors, such as GroupNorm, cannot be folded into a convolution, so
        both convolutions stay.
        """
        if not all(map(is_foldable, (self.conv1, self.conv2))):
            return nn.Sequential(Summed(self.conv1, self.conv2), self.act)
        kernel, bias = fold_norm(self.conv1)
        point_kernel, point_bias = fold_norm(self.conv2)
        kernel, bias = kernel + F.pad(point_kernel, (1, 1, 1, 1)), bias + point_bias
        return nn.Sequential(make_conv(kernel, bias), self.act)


class Summed(nn.Module):
    """The sum of what two modules compute."""

    def __init__(self, first: nn.Module, second: nn.Module) -> None:
        super().__init__()
        self.first, self.second = first, second

    def forward(self, x: Tensor) -> Tensor:
        return self.first(x) + self.second(x)


def is_foldable(layer: ConvNorm) -> bool:
    """True if the norm is a BatchNorm with statistics, scales and shifts."""
    names = ('running_mean', 'running_var', 'weight', 'bias')
    return all(getattr(layer.norm, name, None) is not None for name in names)


def fold_norm(layer: ConvNorm) -> tuple[Tensor, Tensor]:
    """The kernel and the bias of a convolution with the BatchNorm that follows it."""
    norm = layer.norm
    scale = norm.weight / (norm.running_var + norm.eps).sqrt()
    return layer.conv.weight * scale[:, None, None, None], norm.bias - norm.running_mean * scale


def make_conv(kernel: Tensor, bias: Tensor) -> nn.Conv2d:
    """A convolution with this kernel and bias that keeps the size of a map."""
    out_channels, in_channels, size, _ = kernel.shape
    conv = nn.Conv2d(in_channels, out_channels, size, padding=size // 2).to(kernel)
    conv.weight.copy_(kernel)
    conv.bias.copy_(bias)
    return conv.requires_grad_(False)


class TwoWayCSP(nn.Module):
    """RT-DETR's CSP block (arXiv:2304.08069): two projections of a map, one through ``RepConv``s.

    Their sum is projected to ``out_channels`` if that is not ``width``, the channels of the two.
    """

    def __init__(
        self, in_channels: int, out_channels: int, num_blocks: int, width: int, conv: Conv, act: str
    ) -> None:
        super().__init__()
        self.conv1 = conv(in_channels, width, 1, act=act)
        self.conv2 = conv(in_channels, width, 1, act=act)
        self.bottlenecks = nn.Sequential(*(RepConv(width, conv, act) for _ in range(num_blocks)))
        is_same = width == out_channels
        self.conv3 = nn.Identity() if is_same else conv(width, out_channels, 1, act=act)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv3(self.bottlenecks(self.conv1(x)) + self.conv2(x))


class SplitCSP(nn.Module):
    """DEIMv2's CSP block: the halves of one projection, one through ``RepConv``s, are summed.

    Args:
        in_channels: channels of the map.
        channels: channels of each half, and of the output.
        num_blocks: number of ``RepConv``s.
        conv, act: see :class:`RepConv`.
        trailing: whether a 3 x 3 convolution follows the sum.
    """

    def __init__(
        self, in_channels: int, channels: int, num_blocks: int, conv: Conv, act: str, trailing: bool
    ) -> None:
        super().__init__()
        self.conv1 = conv(in_channels, 2 * channels, 1, act=act)
        self.bottlenecks = nn.Sequential(*(RepConv(channels, conv, act) for _ in range(num_blocks)))
        self.conv2 = conv(channels, channels, 3, act=act) if trailing else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        first, second = self.conv1(x).chunk(2, dim=1)
        return self.conv2(first + self.bottlenecks(second))


class RepELAN(nn.Module):
    """D-FINE's block after YOLOv9's GELAN (D-FINE, Section 4).

    The two halves of a projection and the outputs of two chained CSP blocks are concatenated and
    projected.

    Args:
        in_channels, channels: channels of the map and of the output.
        width: channels of the CSP blocks.
        num_blocks: number of ``RepConv``s in each CSP block.
        split: whether the CSP blocks are :class:`SplitCSP`, as in DEIMv2. Otherwise they are
            :class:`TwoWayCSP` with a 3 x 3 convolution after each, as in D-FINE.
        trailing: see :class:`SplitCSP`; only with ``split``.
        conv, act: see :class:`RepConv`.
    """

    def __init__(
        self,
        in_channels: int,
        channels: int,
        width: int,
        num_blocks: int,
        split: bool,
        trailing: bool,
        conv: Conv,
        act: str,
    ) -> None:
        super().__init__()

        def csp(inputs: int) -> nn.Sequential:
            if split:
                return nn.Sequential(SplitCSP(inputs, width, num_blocks, conv, act, trailing))
            two_way = TwoWayCSP(inputs, width, num_blocks, width, conv, act)
            return nn.Sequential(two_way, conv(width, width, 3, act=act))

        self.conv1 = conv(in_channels, 2 * channels, 1, act=act)
        self.csp1, self.csp2 = csp(channels), csp(width)
        self.conv2 = conv(2 * channels + 2 * width, channels, 1, act=act)

    def forward(self, x: Tensor) -> Tensor:
        parts = [*self.conv1(x).chunk(2, dim=1)]
        for csp in (self.csp1, self.csp2):
            parts.append(csp(parts[-1]))
        return self.conv2(torch.cat(parts, dim=1))
