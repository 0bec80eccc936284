"""A feature pyramid from the single map of a plain ViT."""

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from mmengine.model import BaseModule
from pydantic import AfterValidator, Field
from torch import Tensor, nn

from vit_plugin.arguments.fields import Depth, InitConfig, NormConfig, PositiveInt, PositiveInts
from vit_plugin.errors import ConfigError
from vit_plugin.registry import MODELS

from ..layers.conv_norm import ConvNorm
from ..layers.numerics import build_map_norm
from ..loading.hooks import keep_shards


def check_power_of_two(scale: float) -> float:
    """Validate a scale: doublings or halvings of a size."""
    if math.log2(scale) % 1:
        raise ValueError('Input should be a power of two')
    return scale


Scale = Annotated[float, Field(ge=1 / 32, le=32), AfterValidator(check_power_of_two)]
Scales = Annotated[Sequence[Scale], Field(min_length=1)]


class PyramidScale(nn.Module):
    """The map at another scale: (B, in_channels, h, w) -> (B, out_channels, scale * h, scale * w).

    Each doubling halves the channels. Between two doublings there are a norm and a GELU. A max-pool
    reduces the size.
    """

    def __init__(
        self, in_channels: int, out_channels: int, scale: float, norm_cfg: Mapping[str, Any]
    ) -> None:
        super().__init__()
        doublings = round(math.log2(scale))
        layers: list[nn.Module] = [nn.MaxPool2d(2**-doublings)] if doublings < 0 else []
        for i in range(doublings):
            if i:
                layers += [build_map_norm(norm_cfg, in_channels), nn.GELU()]
            layers.append(
                nn.ConvTranspose2d(in_channels, in_channels // 2, kernel_size=2, stride=2)
            )
            in_channels //= 2
        self.resize = nn.Sequential(*layers)
        self.lateral = ConvNorm(in_channels, out_channels, kernel_size=1, norm_cfg=norm_cfg)
        self.output = ConvNorm(out_channels, out_channels, kernel_size=3, norm_cfg=norm_cfg)

    def forward(self, x: Tensor) -> Tensor:
        return self.output(self.lateral(self.resize(x)))


@MODELS.register_module()
class SimpleFPN(BaseModule):
    """The simple feature pyramid of ViTDet (arXiv:2203.16527, Section 3, "Simple feature pyramid").

    Args:
        in_channels: channels of the backbone's map, or of each of its maps. The last map is used.
        out_channels: channels of every output.
        num_outs: number of outputs. Each output beyond ``scales`` has half the size of the previous
            one.
        scales: powers of two. Each makes one output, with the size of the map times this number.
        add_extra_convs: compute the outputs beyond ``scales`` with 3 x 3 convolutions of stride 2,
            as RetinaNet's P6 and P7. Their input is the previous output, MMDetection's
            ``'on_output'``, which is accepted as a synonym of True. False drops every other
            element.
        norm_cfg: the norms. ``'LN2d'`` norms over the channels.
        init_cfg: MMEngine's initialization config.

    Shape: a map (B, in_channels, h, w), or a tuple whose last element is this map -> ``num_outs``
    maps.

    Raises:
        ConfigError: if there are fewer outputs than scales, or if the channels cannot be halved for
            each doubling. In the forward, if it gets no map of ``in_channels``.
    """

    def __init__(
        self,
        in_channels: PositiveInt | PositiveInts,
        out_channels: PositiveInt = 256,
        num_outs: Depth = 5,
        scales: Scales = (4, 2, 1, 0.5),
        add_extra_convs: bool | Literal['on_output'] = False,
        norm_cfg: NormConfig = dict(type='LN2d'),
        init_cfg: InitConfig = None,
    ) -> None:
        super().__init__(init_cfg)
        if num_outs < len(scales):
            raise ConfigError(
                f'SimpleFPN: num_outs={num_outs} is fewer than the {len(scales)} scales; leave out '
                f'scales, or set num_outs={len(scales)}.'
            )
        in_channels = self.in_channels = (
            in_channels if isinstance(in_channels, int) else in_channels[-1]
        )
        doublings = math.log2(max(scales))
        if doublings > 0 and in_channels % 2**doublings:
            raise ConfigError(
                f'SimpleFPN: in_channels={in_channels} cannot be halved for each doubling of '
                f'scales={tuple(scales)}; take a multiple of {2 ** int(doublings)}, or smaller '
                'scales.'
            )
        self.levels = nn.ModuleList(
            PyramidScale(in_channels, out_channels, scale, norm_cfg) for scale in scales
        )
        self.extra_levels = nn.ModuleList()
        for i in range(num_outs - len(scales)):
            level: nn.Module = nn.MaxPool2d(kernel_size=1, stride=2)
            if add_extra_convs:
                conv = nn.Conv2d(out_channels, out_channels, kernel_size=3, stride=2, padding=1)
                level = nn.Sequential(nn.ReLU() if i else nn.Identity(), conv)
            self.extra_levels.append(level)
        self.register_load_state_dict_pre_hook(keep_shards)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize the convolutions as in detectron2's pyramids (Kaiming uniform, ``a=1``)."""
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_uniform_(module.weight, a=1)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)

    def forward(self, feats: Tensor | Sequence[Tensor]) -> tuple[Tensor, ...]:
        x = feats if isinstance(feats, Tensor) else feats[-1]
        if x.ndim != 4 or x.shape[1] != self.in_channels:
            raise ConfigError(
                f'SimpleFPN got {tuple(x.shape)} but takes a map (B, '
                f'in_channels={self.in_channels}, h, w): set in_channels to the width of the '
                "backbone, and the backbone's out_type='featmap'."
            )
        outs = [level(x) for level in self.levels]
        for level in self.extra_levels:
            outs.append(level(outs[-1]))
        return tuple(outs)
