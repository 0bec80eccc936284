"""The neck of the smallest DEIMv2 models: one map of a CNN becomes two (arXiv:2509.20787)."""

from collections.abc import Sequence
from functools import partial

import torch.nn.functional as F
from mmengine.model import BaseModule
from torch import Tensor, nn

from vit_plugin.arguments.fields import Factor, InitConfig, NormConfig, PositiveInt, PositiveInts
from vit_plugin.errors import ConfigError
from vit_plugin.models.layers.conv_norm import ConvNorm
from vit_plugin.projects.detr_family.rep_conv import RepELAN
from vit_plugin.registry import MODELS


@MODELS.register_module()
class LiteEncoder(BaseModule):
    """A map and its average-pooled copy of half the size, fused top-down and then bottom-up.

    Before the fusion, the global average of the coarse map is added to each of its elements.

    Args:
        in_channels: channels of the backbone's only map, as a list with one number.
        out_channels: channels of both outputs.
        depth, expansion: options of the fusion blocks, see
            :class:`~vit_plugin.projects.d_fine.hybrid_encoder.HybridEncoder` with the ``kind``
            ``'split'`` or ``'split_trailing'``.
        trailing: whether a 3 x 3 convolution ends each CSP block, see
            :class:`~vit_plugin.projects.detr_family.rep_conv.SplitCSP`.
        act: type of the activations.
        norm_cfg: the norms of the convolutions.
        init_cfg: MMEngine's initialization config.

    Shape: one map (B, C, h, w) -> maps (B, out_channels, h, w) and (B, out_channels, ceil(h / 2),
    ceil(w / 2)).

    Raises:
        ConfigError: for more than one map. In the forward, for other channels.
    """

    def __init__(
        self,
        in_channels: PositiveInts,
        out_channels: PositiveInt = 128,
        depth: Factor = 1.0,
        expansion: Factor = 1.0,
        trailing: bool = True,
        act: str = 'SiLU',
        norm_cfg: NormConfig = dict(type='BN'),
        init_cfg: InitConfig = None,
    ) -> None:
        super().__init__(init_cfg)
        if len(in_channels) != 1:
            raise ConfigError(
                f'LiteEncoder: in_channels={list(in_channels)} must be of one map; give the '
                'backbone one of out_indices, or take HybridEncoder.'
            )
        self.in_channels, dims = list(in_channels), out_channels
        conv = partial(ConvNorm, norm_cfg=norm_cfg)
        self.projections = nn.ModuleList(conv(channels, dims, 1) for channels in in_channels)
        # Names of DEIMv2's checkpoints. The first two follow the pooling, the third the addition of
        # the global average.
        self.down_conv1, self.down_conv2, self.bi_fusion_conv = (
            conv(dims, dims, 1, act=act) for _ in range(3)
        )
        width, blocks = round(expansion * dims // 2), round(3 * depth)  # see HybridEncoder
        self.top_down, self.bottom_up = (
            RepELAN(dims, dims, width, blocks, split=True, trailing=trailing, conv=conv, act=act)
            for _ in range(2)
        )

    def forward(self, feats: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """One map -> two fused maps, the finer one first."""
        if [x.shape[1] for x in feats] != self.in_channels:
            raise ConfigError(
                f'LiteEncoder got {[tuple(x.shape) for x in feats]} but takes one map (B, C, h, w) '
                f'of in_channels={self.in_channels}: change these, or the out_indices of the '
                'backbone.'
            )
        fine = self.projections[0](feats[0])
        coarse = self.down_conv1(_halve(fine))
        coarse = self.bi_fusion_conv(coarse + coarse.mean((2, 3), keepdim=True))
        fused = self.top_down(fine + F.interpolate(coarse, fine.shape[2:], mode='nearest'))
        return fused, self.bottom_up(coarse + self.down_conv2(_halve(fused)))


def _halve(x: Tensor) -> Tensor:
    """Maps (B, C, h, w) -> (B, C, ceil(h / 2), ceil(w / 2))."""
    return F.avg_pool2d(x, kernel_size=3, stride=2, padding=1)
