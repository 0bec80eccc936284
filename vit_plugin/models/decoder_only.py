"""MMDetection's DINO and Deformable DETR without a transformer encoder, for a backbone that is one."""

from typing import Any

from torch import Tensor, nn

from vit_plugin.errors import ConfigError, leave_out_multimodal, needed_by
from vit_plugin.registry import MODELS

with needed_by('DecoderOnlyDINO'):
    leave_out_multimodal()
    from mmdet.models.detectors import DINO, DeformableDETR


class NoEncoder(nn.Module):
    """The maps as they are."""

    def forward(self, query: Tensor, **kwargs: Any) -> Tensor:
        return query


class DecoderOnly:
    """What both detectors change.

    Raises:
        ConfigError: if ``encoder.num_layers`` is not 0, or in the forward, if an image has fewer positions than queries
            that are chosen from them.
    """
    encoder: Any
    level_embed: nn.Parameter
    num_queries: int
    as_two_stage: bool

    def _init_layers(self) -> None:
        layers = self.encoder.get('num_layers')
        if layers != 0:
            raise ConfigError(f'{type(self).__name__}: encoder.num_layers={layers} must be 0, since there is no '
                              "encoder; set it, or take MMDetection's own class.")
        self.encoder = dict(self.encoder, num_layers=1)  # MMDetection asks its first layer for the width
        super()._init_layers()  # type: ignore[misc]
        self.encoder = NoEncoder()
        self.level_embed.requires_grad = False  # only an encoder reads it

    def forward_encoder(self, feat: Tensor, **kwargs: Any) -> dict[str, Any]:
        if self.as_two_stage and feat.shape[1] < self.num_queries:
            raise ConfigError(f'{type(self).__name__}: num_queries={self.num_queries} is more than the {feat.shape[1]} '
                              'positions of this image, from which queries are chosen; take fewer queries, larger '
                              'images or finer maps.')
        return super().forward_encoder(feat, **kwargs)  # type: ignore[misc]


@MODELS.register_module()
class DecoderOnlyDINO(DecoderOnly, DINO):
    """MMDetection's ``DINO`` (arXiv:2203.03605) without an encoder. It needs ``encoder=dict(num_layers=0)``."""


@MODELS.register_module()
class DecoderOnlyDeformableDETR(DecoderOnly, DeformableDETR):
    """MMDetection's ``DeformableDETR`` (arXiv:2010.04159) without an encoder, also two-stage. See above."""
