"""EdgeCrafter's backbone (arXiv:2603.18739): a transformer with a pyramid of three maps.

The mean of the last blocks' feature maps is resized to the three levels.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_plugin.arch import ArchCfg
from vit_plugin.arguments.fields import Indices, NormConfig, PositiveInt
from vit_plugin.errors import ConfigError
from vit_plugin.models.backbones.vit import VisionTransformer
from vit_plugin.models.layers.conv_norm import ConvNorm
from vit_plugin.registry import MODELS

EC_VIT_STRIDES = (8, 16, 32)


@MODELS.register_module()
class ECViT(VisionTransformer):
    """A :class:`VisionTransformer` with a three-level feature pyramid, as in ECDet and ECSeg.

    The mean of the last blocks' feature maps is resized to strides 8, 16 and 32, and projected. The
    transformer may be of any stride, and its stem may be a CNN.

    Args:
        arch: see :class:`VisionTransformer`. ``'ECViT-T'``, ``'ECViT-T+'``, ``'ECViT-S'`` and
            ``'ECViT-S+'`` are the paper's.
        out_indices: the blocks to average; the last two in the paper.
        out_channels: channels of the three outputs. None: the width of the encoder, and only the
            coarsest output is projected, as in ECDet-S and ECDet-M.
        projection_norm_cfg: the norms of the projections.
        **kwargs: see :class:`VisionTransformer`, without ``out_type``.

    Shape: images (B, in_channels, H, W) -> maps (B, out_channels, ceil(H / s), ceil(W / s)) for
    s = 8, 16 and 32.

    Raises:
        ConfigError: for another ``out_type``.
    """

    # Modules that the checkpoint of an encoder lacks, see LoadableBackbone.
    added_parts = ('projections',)

    def __init__(
        self,
        arch: str | ArchCfg = 'ECViT-T',
        out_indices: int | Indices = (-2, -1),
        out_channels: PositiveInt | None = None,
        projection_norm_cfg: NormConfig = dict(type='BN'),
        **kwargs: Any,
    ) -> None:
        super().__init__(arch, out_indices=out_indices, **{'out_type': 'featmap', **kwargs})
        if self.out_type != 'featmap':
            raise ConfigError(f"ECViT: out_type={self.out_type!r} must be 'featmap'; leave it out.")
        self.out_channels = out_channels or self.embed_dims
        self.projections = nn.ModuleList(
            ConvNorm(self.embed_dims, self.out_channels, 1, projection_norm_cfg)
            if out_channels or stride == EC_VIT_STRIDES[-1]
            else nn.Identity()
            for stride in EC_VIT_STRIDES
        )

    @property
    def channels(self) -> tuple[int, ...]:
        """Channels of each output."""
        return (self.out_channels,) * len(EC_VIT_STRIDES)

    @property
    def strides(self) -> tuple[int, ...]:
        """Pixels per element of each output map."""
        return EC_VIT_STRIDES

    def forward(self, images: Tensor) -> tuple[Tensor, ...]:
        """Images (B, in_channels, H, W) -> three maps, from the finest."""
        block_outputs, grid = self.features(images)
        maps = [self.output(tokens, grid) for tokens in block_outputs]
        x = torch.stack(maps).mean(0)  # (B, C, h, w)
        # The image's sides divided by each stride, rounded up.
        sizes = ([-(-side // stride) for side in images.shape[2:]] for stride in EC_VIT_STRIDES)
        return tuple(
            project(F.interpolate(x, size, mode='bilinear', align_corners=False))
            for project, size in zip(self.projections, sizes, strict=True)
        )
