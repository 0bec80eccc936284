"""Inverted bottlenecks (MBConv) as a stem, as in ViTamin."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field
from timm.models.vitamin import MbConvStages, VitCfg
from torch import Tensor, nn
from typing_extensions import Unpack

from vit_plugin.arguments.fields import Depth, PositiveInt
from vit_plugin.registry import MODELS

from ..layers.recompute import Recompute
from .layer_maps import LayerMaps
from .stem import Stem, StemOptions

Two = Field(min_length=2, max_length=2)  # one value for each stage


class MbConvMaps(MbConvStages):
    """timm's layers, returning every map: first convolutions, stages, last convolution."""

    def __init__(self, cfg: VitCfg, in_channels: int, with_cp: Recompute) -> None:
        super().__init__(cfg, in_chans=in_channels)
        self.stages: nn.Module = LayerMaps(self.stages, with_cp)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        root = self.stem(x)
        maps = self.stages(root)
        return root, *maps, self.pool(maps[-1])


@MODELS.register_module()
class MBConvEmbed(Stem):
    """The stem of ViTamin (arXiv:2404.02132): convolutions and two stages of inverted bottlenecks.

    Two convolutions precede the stages, and a strided convolution follows them. The layers are
    timm's `MbConvStages`. The maps have the strides 4, 8 and 16. The last one holds the tokens.

    Args:
        channels: channels of the two stages. The first convolutions have as many as the first
            stage.
        stage_depths: number of bottlenecks in each stage.
        with_root: whether the map of the first convolutions, of stride 2, comes before those of the
            stages.
        in_channels, embed_dims, patch_size, **kwargs: see :class:`Stem`. By default, the last
            map holds the tokens, without a projection.
    """

    def __init__(
        self,
        in_channels: PositiveInt = 3,
        embed_dims: PositiveInt = 768,
        channels: Annotated[Sequence[PositiveInt], Two] = (128, 256),
        stage_depths: Annotated[Sequence[Depth], Two] = (2, 4),
        patch_size: PositiveInt = 1,
        with_root: bool = False,
        **kwargs: Unpack[StemOptions],
    ) -> None:
        strides, widths = [4, 8, 16], [*channels, embed_dims]
        if with_root:
            strides, widths = [2, *strides], [channels[0], *widths]
        kwargs.setdefault('projection', False)
        super().__init__(
            in_channels,
            embed_dims,
            patch_size,
            **kwargs,
            feature_strides=strides,
            feature_channels=widths,
        )
        self.with_root = with_root
        # ViTamin's third stage is the transformer, of which MbConvStages reads only the width.
        cfg = VitCfg(
            embed_dim=(*channels, embed_dims), depths=(*stage_depths, 1), stem_width=channels[0]
        )
        self.backbone = MbConvMaps(cfg, in_channels, self.with_cp)
        self.depths = ['backbone.stem.', 'backbone.stages.0.', 'backbone.stages.1.']

    def features(self, images: Tensor) -> tuple[Tensor, ...]:
        maps = self.backbone(images)
        return maps if self.with_root else maps[1:]
