"""DPT's decoder, from a transformer's tokens to dense predictions (arXiv:2103.13413).

Sections and equations are those of that paper.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Literal

import torch.nn.functional as F
from torch import Tensor, nn

from vit_plugin.arguments.fields import InitConfig, NormConfig, Positive, PositiveInt, PositiveInts
from vit_plugin.errors import ConfigError
from vit_plugin.models.layers.numerics import build_map_norm
from vit_plugin.registry import MODELS

from .depth_head import DEPTH_LOSS, DepthHead, Target

Readout = Literal['ignore', 'add', 'project']


class Reassemble(nn.Module):
    """Make a map of the tokens of a block: read the class token, project, resample (Section 3.1).

    Args:
        in_channels: channels of the map of tokens. With ``'add'`` and ``'project'``, the second
            half are those of the class token, repeated at each position.
        out_channels: channels of the result.
        readout_type: how the class token is used: not at all, added to each token, or concatenated
            with it and projected (Equations 2 to 4).
        factor: scale of height and width, an integer or its reciprocal.
    """

    def __init__(
        self, in_channels: int, out_channels: int, readout_type: Readout, factor: Fraction
    ) -> None:
        super().__init__()
        self.readout_type = readout_type
        if readout_type != 'ignore':
            in_channels //= 2
        if readout_type == 'project':
            self.read = nn.Linear(2 * in_channels, in_channels)
        self.projection = nn.Conv2d(in_channels, out_channels, 1)
        self.resize: nn.Module = nn.Identity()
        up, down = factor.as_integer_ratio()
        if up > 1:
            self.resize = nn.ConvTranspose2d(out_channels, out_channels, up, up)
        elif down > 1:
            self.resize = nn.Conv2d(out_channels, out_channels, 3, down, 1)

    def forward(self, x: Tensor) -> Tensor:
        """The map (B, in_channels, h, w) -> (B, out_channels, h', w')."""
        if self.readout_type == 'add':
            x = sum(x.chunk(2, dim=1))
        elif self.readout_type == 'project':
            x = F.gelu(self.read(x.movedim(1, -1))).movedim(-1, 1)
        return self.resize(self.projection(x))


class ResidualUnit(nn.Module):
    """Two convolutions, each after a ReLU, with a shortcut around both, as in RefineNet."""

    def __init__(self, channels: int, norm_cfg: Mapping[str, Any] | None) -> None:
        super().__init__()
        self.conv1, self.conv2 = (
            nn.Conv2d(channels, channels, 3, padding=1, bias=norm_cfg is None) for _ in range(2)
        )
        self.norm1, self.norm2 = (
            build_map_norm(norm_cfg, channels) if norm_cfg else nn.Identity() for _ in range(2)
        )

    def forward(self, x: Tensor) -> Tensor:
        """Maps (B, C, h, w) -> maps of the same shape."""
        return x + self.norm2(self.conv2(self.norm1(self.conv1(x.relu())).relu()))


class Fusion(nn.Module):
    """Add a map to the fused coarser maps, and enlarge the result (Section 3.2).

    For the coarsest map there is nothing to add, so its ``unit1`` is unused. Published files have
    it, though.
    """

    def __init__(self, channels: int, norm_cfg: Mapping[str, Any] | None) -> None:
        super().__init__()
        self.unit1, self.unit2 = (ResidualUnit(channels, norm_cfg) for _ in range(2))
        self.projection = nn.Conv2d(channels, channels, 1)

    def forward(self, x: Tensor, level: Tensor | None, size: Sequence[int]) -> Tensor:
        """Fused maps and a finer map, both (B, C, h, w) -> (B, C, *size).

        Args:
            x: the fused coarser maps; at first, the coarsest map.
            level: the map to add; None at first.
            size: height and width of the result.
        """
        if level is not None:
            x = x + self.unit1(level)
        x = F.interpolate(self.unit2(x), tuple(size), mode='bilinear', align_corners=True)
        return self.projection(x)


@MODELS.register_module()
class DPTDepthHead(DepthHead):
    """The head of DPT (arXiv:2103.13413) and Depth Anything (arXiv:2401.10891, arXiv:2406.09414).

    Of four maps, the third keeps its stride s, and the others get the strides s / 4, s / 2 and 2 s:
    maps of four blocks of a plain transformer are resampled, while a CNN's maps at these strides
    are used unchanged, as in DPT-Hybrid. MMSegmentation's ``DPTHead`` is a segmentation head, which
    no public depth model has, and only takes maps of a single stride.

    Args:
        in_channels: channels of the maps, as in ``backbone.channels``.
        strides: their strides, as in ``backbone.strides``. Maps with the last stride are made from
            tokens.
        readout_type: how the class token is used: ``'ignore'``, ``'add'`` or ``'project'``. The
            last two need the backbone's ``out_type='pyramid_cls'``.
        level_channels: channels of each map after resampling. A CNN's map keeps its own. Default:
            ``channels`` for the others.
        channels: channels of the fusion.
        head_channels: channels before the last convolution.
        norm_cfg: norms of the residual units. None: none.
        max_depth: largest depth in meters, by a sigmoid. None: a ReLU without a bound.
        target, loss_decode, init_cfg: see :class:`DepthHead`.

    Raises:
        ConfigError: if the lists have different lengths, if a map cannot be resampled to its
            stride, or if a CNN's map would need other channels.
    """

    def __init__(
        self,
        in_channels: PositiveInts,
        strides: PositiveInts,
        readout_type: Readout = 'ignore',
        level_channels: PositiveInts | None = None,
        channels: PositiveInt = 256,
        head_channels: PositiveInt = 32,
        norm_cfg: NormConfig | None = None,
        max_depth: Positive | None = None,
        target: Target = 'depth',
        loss_decode: Any = DEPTH_LOSS,
        init_cfg: InitConfig = None,
    ) -> None:
        super().__init__(target, loss_decode, init_cfg)
        self.in_channels, self.stride, self.max_depth = in_channels, strides[-1], max_depth
        per_map = [values for values in (in_channels, strides, level_channels) if values]
        if len({len(values) for values in per_map}) > 1:
            raise ConfigError(
                'DPTDepthHead: in_channels, strides and level_channels, if given, have one '
                f'value for each map, but {" and ".join(str(len(values)) for values in per_map)}.'
            )
        self._build_levels(strides, readout_type, level_channels, channels)
        self.fusion = nn.ModuleList(Fusion(channels, norm_cfg) for _ in strides)
        self.fusion[0].unit1.requires_grad_(False)  # DDP would wait for its gradient
        self.conv1 = nn.Conv2d(channels, channels // 2, 3, padding=1)
        self.conv2 = nn.Conv2d(channels // 2, head_channels, 3, padding=1)
        self.conv3 = nn.Conv2d(head_channels, 1, 1)

    def _build_levels(
        self,
        strides: Sequence[int],
        readout_type: Readout,
        level_channels: Sequence[int] | None,
        channels: int,
    ) -> None:
        """Build the layers from each map to the fusion."""
        self.reassemble, self.convs = nn.ModuleList(), nn.ModuleList()
        for i, factor in enumerate(upsampling_factors(strides)):
            width, is_from_tokens = self.in_channels[i], strides[i] == self.stride
            is_unchanged = factor == 1 and not is_from_tokens
            default_channels = width if is_unchanged else channels
            out_channels = level_channels[i] if level_channels else default_channels
            if is_unchanged and out_channels != width:
                raise ConfigError(
                    f'DPTDepthHead: level_channels[{i}]={out_channels}, but the map of the CNN has '
                    f'{width} channels; give these.'
                )
            read = readout_type if is_from_tokens else 'ignore'
            layer = nn.Identity() if is_unchanged else Reassemble(width, out_channels, read, factor)
            self.reassemble.append(layer)
            self.convs.append(nn.Conv2d(out_channels, channels, 3, padding=1, bias=False))

    def forward(self, inputs: Sequence[Tensor]) -> Tensor:
        """Maps (B, C_i, h_i, w_i), the finest first -> depth or disparity (B, 1, H, W).

        H and W are those of the last map times its stride.
        """
        levels = [
            conv(reassemble(x))
            for conv, reassemble, x in zip(self.convs, self.reassemble, inputs, strict=True)
        ]
        x, *finer = reversed(levels)
        # Each fusion enlarges to the next finer map, and the last one to twice the finest.
        sizes = [*(level.shape[2:] for level in finer), [2 * side for side in levels[0].shape[2:]]]
        x = self.fusion[0](x, None, sizes[0])
        for fuse, level, size in zip(self.fusion[1:], finer, sizes[1:], strict=True):
            x = fuse(x, level, size)
        pixels = [self.stride * side for side in inputs[-1].shape[2:]]
        x = F.interpolate(self.conv1(x), pixels, mode='bilinear', align_corners=True)
        x = self.conv3(self.conv2(x).relu())
        return x.relu() if self.max_depth is None else self.max_depth * x.sigmoid()


def upsampling_factors(strides: Sequence[int]) -> list[Fraction]:
    """The upsampling factors of maps with these strides, see :class:`DPTDepthHead`.

    Raises:
        ConfigError: if one is neither an integer nor its reciprocal.
    """
    reference = max(len(strides) - 2, 0)  # the map that keeps its stride
    factors = []
    for i, stride in enumerate(strides):
        factors.append(Fraction(stride, strides[reference]) * Fraction(2) ** (reference - i))
        if min(factors[-1].as_integer_ratio()) > 1:
            raise ConfigError(
                f'DPTDepthHead: a map of stride {stride} does not become {float(factors[-1]):g} '
                f'times as fine; leave stride {stride} out of the maps.'
            )
    return factors
