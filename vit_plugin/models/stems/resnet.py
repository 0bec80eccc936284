"""The authors' ResNet as a stem: post-activation v1.5, GroupNorm, standardized weights.

The source is google-research/vision_transformer `vit_jax/models_resnet.py`, and `models_vit.py` for
the root.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Literal

import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn
from typing_extensions import Unpack

from vit_plugin.arguments.fields import Depth, PositiveInt
from vit_plugin.registry import MODELS

from ..layers.conv_norm import ConvNorm
from ..layers.numerics import Numerics, build_map_norm
from ..layers.recompute import Recompute, recomputed
from ..layers.std_conv import StdConv2d, max_pool
from .padding import pad_to
from .stem import Stem, StemOptions

EXPANSION = 4

# Stride of the root -> kernel size and stride of its convolution, and whether a 3 x 3 max-pool of
# stride 2 follows. 4 is the authors' root. 1 is the root of the ResNets for CIFAR
# (arXiv:1512.03385, Section 4.2).
ROOTS = {4: (7, 2, True), 2: (3, 2, False), 1: (3, 1, False)}

RootStride = Literal[4, 2, 1]
# Each stage is twice as wide as the previous one.
StageDepths = Annotated[Sequence[Depth], Field(max_length=5)]


class Bottleneck(nn.Module):
    """1 x 1, 3 x 3 and 1 x 1 convolutions with a shortcut. The 3 x 3 convolution has stride s.

    The scale of the last norm starts at zero, so a new block equals its shortcut.

    Shape: (B, C, H, W) -> (B, 4 * width, ceil(H/s), ceil(W/s)).
    """

    def __init__(self, in_channels: int, width: int, stride: int, numerics: Numerics) -> None:
        super().__init__()
        out_channels = EXPANSION * width
        conv: Callable[..., nn.Module] = partial(StdConv2d, **numerics.stem_conv_cfg)
        norm = partial(build_map_norm, numerics.stem_norm_cfg)
        self.downsample: nn.Module | None = None
        if stride != 1 or in_channels != out_channels:
            norm_cfg = numerics.stem_shortcut_norm_cfg or numerics.stem_norm_cfg
            self.downsample = ConvNorm(
                in_channels, out_channels, 1, norm_cfg, stride=stride, conv=conv
            )
        self.conv1 = conv(in_channels, width, 1)
        self.norm1 = norm(width)
        self.conv2 = conv(width, width, 3, stride)
        self.norm2 = norm(width)
        self.conv3 = conv(width, out_channels, 1)
        self.norm3 = norm(out_channels)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.zeros_(self.norm3.weight)

    def forward(self, x: Tensor) -> Tensor:
        shortcut = x if self.downsample is None else self.downsample(x)
        x = F.relu(self.norm1(self.conv1(x)), inplace=True)
        x = F.relu(self.norm2(self.conv2(x)), inplace=True)  # (B, width, H/s, W/s)
        x = self.norm3(self.conv3(x))  # (B, 4 * width, H/s, W/s)
        return F.relu(x.add_(shortcut), inplace=True)


class Stage(nn.Module):
    """A sequence of bottlenecks. The first one has the stride."""

    def __init__(
        self,
        in_channels: int,
        width: int,
        depth: int,
        stride: int,
        numerics: Numerics,
        with_cp: Recompute,
    ) -> None:
        super().__init__()
        self.with_cp = with_cp
        self.blocks = nn.ModuleList([Bottleneck(in_channels, width, stride, numerics)])
        for _ in range(depth - 1):
            self.blocks.append(Bottleneck(EXPANSION * width, width, 1, numerics))

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = recomputed(self.with_cp, block, x)
        return x


class ResNet(nn.Module):
    """Root and stages.

    Returns the map of every stage, or the pooled map of the root if there is no stage. With
    ``with_root``, the root's map before the pool comes first. The parameters have the names of
    timm's hybrids.
    """

    def __init__(
        self,
        in_channels: int,
        stage_depths: Sequence[int],
        width: int,
        root_stride: int,
        numerics: Numerics,
        with_cp: Recompute,
        with_root: bool = False,
    ) -> None:
        super().__init__()
        kernel_size, stride, self.pooled = ROOTS[root_stride]
        self.pool_cfg, self.with_root = numerics.stem_pool_cfg, with_root
        self.stem = ConvNorm(
            in_channels,
            width,
            kernel_size,
            numerics.stem_norm_cfg,
            stride=stride,
            conv=partial(StdConv2d, **numerics.stem_conv_cfg),
        )
        self.stages = nn.ModuleList()
        channels = width
        for i, depth in enumerate(stage_depths):
            stride = 2 if i else 1
            self.stages.append(Stage(channels, width * 2**i, depth, stride, numerics, with_cp))
            channels = EXPANSION * width * 2**i

    def forward(self, images: Tensor) -> tuple[Tensor, ...]:
        root = F.relu(self.stem(images), inplace=True)
        x = max_pool(root, **self.pool_cfg) if self.pooled else root
        maps = [root] if self.with_root else []
        for stage in self.stages:
            x = stage(x)
            maps.append(x)
        return tuple(maps) if self.stages else (*maps, x)


@MODELS.register_module()
class ResNetEmbed(Stem):
    """The authors' ResNet, then patches of its last map.

    See arXiv:2010.11929, Section 3.1, "Hybrid Architecture".

    Args:
        in_channels, embed_dims, patch_size, **kwargs: see :class:`Stem`.
        stage_depths: number of bottlenecks in each stage. An empty sequence leaves only the root,
            as in R+Ti/16.
        width: channels of the root. Stage i has 4 * width * 2**i channels.
        root_stride: 4 is the authors' root, a 7 x 7 convolution and a 3 x 3 max-pool, both of
            stride 2. 2 and 1 are one 3 x 3 convolution of that stride, for small images.
        with_root: whether the map of the root's convolution comes before those of the stages. That
            of the authors' root has stride 2.
    """

    def __init__(
        self,
        in_channels: PositiveInt = 3,
        embed_dims: PositiveInt = 768,
        stage_depths: StageDepths = (3, 4, 9),
        width: PositiveInt = 64,
        root_stride: RootStride = 4,
        patch_size: PositiveInt = 1,
        with_root: bool = False,
        **kwargs: Unpack[StemOptions],
    ) -> None:
        stages = range(len(stage_depths))
        strides = [root_stride * 2**i for i in stages] or [root_stride]
        channels = [EXPANSION * width * 2**i for i in stages] or [width]
        if with_root:
            _, conv_stride, _ = ROOTS[root_stride]
            strides, channels = [conv_stride, *strides], [width, *channels]
        super().__init__(
            in_channels,
            embed_dims,
            patch_size,
            **kwargs,
            feature_strides=strides,
            feature_channels=channels,
        )
        self.backbone = ResNet(
            in_channels, stage_depths, width, root_stride, self.numerics, self.with_cp, with_root
        )
        self.depths = ['backbone.stem.', *(f'backbone.stages.{i}.' for i in stages)]

    def features(self, images: Tensor) -> tuple[Tensor, ...]:
        maps = self.backbone(images)
        if self.numerics.stem_pool_cfg['padding'] == 'same':
            return maps
        # Without padding, the max-pool's maps lack a row and a column. As in TransUNet, the
        # returned maps are padded with zeros, but not the maps within the CNN.
        return tuple(
            pad_to(x, [-(-side // stride) for side in images.shape[2:]])
            for x, stride in zip(maps, self.feature_strides, strict=True)
        )
