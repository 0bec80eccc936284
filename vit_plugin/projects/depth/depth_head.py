"""The base class of depth heads for MMSegmentation's ``DepthEstimator``, and DINOv2's linear head.

A depth head takes the feature maps of a backbone, and predicts the depth of each pixel.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import torch
import torch.nn.functional as F
from mmengine.model import BaseModule
from torch import Tensor, nn

from vit_plugin.arguments.fields import InitConfig, Positive, PositiveInt, PositiveInts
from vit_plugin.errors import ConfigError
from vit_plugin.registry import MODELS

Target = Literal['depth', 'disparity']
MIN_DEPTH = 1e-3  # meters; smaller values mean no depth, as sensors store it
BINS_OFFSET = 0.1  # like AdaBins and DINOv2, so that every bin has a gradient
DEPTH_LOSS = dict(type='vit_plugin.SiLogLoss')


class DepthHead(BaseModule):
    """The base class of depth heads: feature maps -> a value per pixel, with losses.

    It has the attributes that MMSegmentation's ``DepthEstimator`` requires. ``BaseDecodeHead`` is
    not used, since it builds a classifier and losses over classes.

    Args:
        target: what is predicted. ``'depth'`` is in meters. ``'disparity'`` is the inverse of the
            depth, without a fixed scale and shift if the loss ignores these.
        loss_decode: one or several losses of prediction and truth, both (B, 1, H, W). Pixels with a
            true value of 0 are ignored.
        init_cfg: MMEngine's initialization config.
    """

    task = 'depth'  # read by `train --weights` to recognize a depth model
    num_classes = out_channels = 1
    align_corners = False  # for resizing to the image's own size

    def __init__(
        self, target: Target = 'depth', loss_decode: Any = DEPTH_LOSS, init_cfg: InitConfig = None
    ) -> None:
        super().__init__(init_cfg)
        self.target = target
        losses = [loss_decode] if isinstance(loss_decode, Mapping) else loss_decode
        self.losses = nn.ModuleList(map(MODELS.build, losses))

    # MMSegmentation passes its train_cfg or test_cfg as the last argument, which is not needed.
    def loss(self, inputs: Sequence[Tensor], data_samples: Sequence[Any], _: Any) -> dict:
        """The losses of maps and their data samples, by name."""
        target = torch.stack([sample.gt_depth_map.data for sample in data_samples])
        pred = resize_maps(self(inputs), target.shape[2:])
        if self.target == 'disparity':
            target = inverse(target)
        losses: dict[str, Tensor] = {}
        for loss in self.losses:  # MMSegmentation adds losses of one name
            losses[loss.loss_name] = losses.get(loss.loss_name, 0) + loss(pred, target)
        return losses

    def predict(self, inputs: Sequence[Tensor], metas: Sequence[Mapping], _: Any) -> Tensor:
        """Maps -> the prediction (B, 1, H, W) at the size of the padded images."""
        return resize_maps(self(inputs), metas[0].get('pad_shape', metas[0]['img_shape'])[:2])


def resize_maps(values: Tensor, size: Sequence[int]) -> Tensor:
    """Values (B, C, h, w) at another height and width."""
    return F.interpolate(values, tuple(size), mode='bilinear', align_corners=False)


def inverse(values: Tensor) -> Tensor:
    """The reciprocal of each value, with 0 kept: from depth to disparity, and back."""
    return torch.where(values > 0, 1 / values.clamp(min=1e-6), 0)


@MODELS.register_module()
class LinearDepthHead(DepthHead):
    """DINOv2's linear head (arXiv:2304.07193, Section 7.4; ``decode_heads/linear_head.py``).

    All maps are resized to one size and concatenated. A linear layer predicts a distribution over
    uniform bins for each pixel, whose mean is the depth (AdaBins, arXiv:2011.14141). With a
    backbone's ``out_type='pyramid_cls'`` it uses the class token, like the original.

    Args:
        in_channels: channels of the maps.
        max_depth: depth of the last bin, in meters.
        min_depth: depth of the first bin.
        num_bins: number of bins.
        upsample: height and width of the prediction over those of the finest map.
        loss_decode, init_cfg: see :class:`DepthHead`.
    """

    def __init__(
        self,
        in_channels: PositiveInt | PositiveInts,
        max_depth: Positive,
        min_depth: Positive = MIN_DEPTH,
        num_bins: PositiveInt = 256,
        upsample: PositiveInt = 4,
        loss_decode: Any = DEPTH_LOSS,
        init_cfg: InitConfig = None,
    ) -> None:
        super().__init__('depth', loss_decode, init_cfg)
        self.in_channels, self.upsample = in_channels, upsample
        if min_depth >= max_depth:
            raise ConfigError(
                f'LinearDepthHead: max_depth={max_depth} must be more than min_depth={min_depth}.'
            )
        width = in_channels if isinstance(in_channels, int) else sum(in_channels)
        self.conv_depth = nn.Conv2d(width, num_bins, 1)
        bins = torch.linspace(min_depth, max_depth, num_bins)
        self.register_buffer('bins', bins[:, None, None], persistent=False)

    def forward(self, inputs: Sequence[Tensor]) -> Tensor:
        """Maps (B, C_i, h_i, w_i), the finest first -> depths (B, 1, h, w)."""
        size = [self.upsample * side for side in inputs[0].shape[2:]]
        x = torch.cat([resize_maps(level, size) for level in inputs], dim=1)
        weights = self.conv_depth(x).relu() + BINS_OFFSET
        return (weights * self.bins).sum(1, keepdim=True) / weights.sum(1, keepdim=True)
