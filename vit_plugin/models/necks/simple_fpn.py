"""Maps of several strides out of a plain ViT's one."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from mmengine.model import BaseModule
from torch import Tensor, nn

from vit_plugin.errors import ConfigError
from vit_plugin.registry import MODELS

from ..layers.numerics import build_norm


class ConvNorm(nn.Sequential):
    """A convolution that keeps the size of the map, and its norm."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, norm_cfg: Mapping[str, Any]) -> None:
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size, padding=kernel_size // 2, bias=False)
        self.norm = build_norm(norm_cfg, out_channels)


class Level(nn.Module):
    """The map at another scale: (B, in_channels, h, w) -> (B, out_channels, scale * h, scale * w).

    Each doubling halves the channels, with a norm and a GELU between two; shrinking is a max-pool.
    """

    def __init__(self, in_channels: int, out_channels: int, scale: float, norm_cfg: Mapping[str, Any]) -> None:
        super().__init__()
        doublings = round(math.log2(scale))
        layers: list[nn.Module] = [nn.MaxPool2d(2**-doublings)] if doublings < 0 else []
        for i in range(doublings):
            if i:
                layers += [build_norm(norm_cfg, in_channels), nn.GELU()]
            layers.append(nn.ConvTranspose2d(in_channels, in_channels // 2, 2, 2))
            in_channels //= 2
        self.resize = nn.Sequential(*layers)
        self.lateral = ConvNorm(in_channels, out_channels, 1, norm_cfg)
        self.output = ConvNorm(out_channels, out_channels, 3, norm_cfg)

    def forward(self, x: Tensor) -> Tensor:
        return self.output(self.lateral(self.resize(x)))


@MODELS.register_module()
class SimpleFPN(BaseModule):
    """The simple feature pyramid of ViTDet (arXiv:2203.16527, Section 3, "Simple feature pyramid").

    Args:
        in_channels: of the backbone's map, or of each of its maps, of which the last is taken.
        out_channels: of every output.
        num_outs: number of outputs; those beyond ``scales`` are each half as large as the one before.
        scales: powers of two, each giving one output that many times as large as the map.
        add_extra_convs: make the outputs beyond ``scales`` with 3 x 3 / 2 convolutions, as RetinaNet's P6 and P7,
            and not by leaving out every other element.
        norm_cfg: the norms, ``'LN2d'`` being that over the channels.
        init_cfg: MMEngine's initialisation config.

    Shape: a map (B, in_channels, h, w), or a tuple of which it is the last -> ``num_outs`` maps.

    Raises:
        ConfigError: for a scale that is no power of two, or fewer outputs than scales.
    """

    def __init__(self, in_channels: int | Sequence[int], out_channels: int = 256, num_outs: int = 5,
                 scales: Sequence[float] = (4, 2, 1, 0.5), add_extra_convs: bool = False,
                 norm_cfg: Mapping[str, Any] = dict(type='LN2d'),
                 init_cfg: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None) -> None:
        super().__init__(init_cfg)
        if not scales or any(scale <= 0 or math.log2(scale) % 1 for scale in scales):
            raise ConfigError(f'neck: scales={tuple(scales)} must be powers of two, such as (4, 2, 1, 0.5).')
        if num_outs < len(scales):
            raise ConfigError(f'neck: num_outs={num_outs} is fewer than the {len(scales)} scales; leave out scales, or '
                              f'set num_outs={len(scales)}.')
        in_channels = in_channels if isinstance(in_channels, int) else in_channels[-1]
        self.levels = nn.ModuleList(Level(in_channels, out_channels, scale, norm_cfg) for scale in scales)
        self.extra_levels = nn.ModuleList(
            nn.Sequential(nn.ReLU() if i else nn.Identity(), nn.Conv2d(out_channels, out_channels, 3, 2, padding=1))
            if add_extra_convs else nn.MaxPool2d(1, 2)
            for i in range(num_outs - len(scales)))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Convolutions that keep the variance of ReLUs, as in detectron2's pyramids."""
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_uniform_(module.weight, a=1)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)

    def forward(self, feats: Tensor | Sequence[Tensor]) -> tuple[Tensor, ...]:
        x = feats if isinstance(feats, Tensor) else feats[-1]
        outs = [level(x) for level in self.levels]
        for level in self.extra_levels:
            outs.append(level(outs[-1]))
        return tuple(outs)
