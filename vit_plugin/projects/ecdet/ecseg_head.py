"""ECSeg's head in MMDetection: ECDet's with a mask for each query (arXiv:2603.18739)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from mmengine.structures import InstanceData
from torch import Tensor

from vit_plugin.arguments.fields import Factor, PositiveInt
from vit_plugin.errors import ConfigError
from vit_plugin.projects.detr_family.head_settings import Loss, Matching, make_matching
from vit_plugin.projects.detr_family.masked_head import MaskedHead
from vit_plugin.registry import MODELS

# From the registry, since a project imports no other but its family.
Base: Any = object if TYPE_CHECKING else MODELS.get('vit_plugin.DFINEHead')
ECSEG_MATCHING = make_matching(bbox=1.0, iou=1.0)


@MODELS.register_module()
class ECSegHead(MaskedHead, Base):
    """A ``DFINEHead`` with the masks of ECSeg, which are those of RF-DETR-Seg.

    Each decoder layer predicts masks, also for noised objects. For each layer, one more block
    refines the map of the masks. The boxes of the first layer before its distributions have no
    masks of their own, and use those of the last layer. Loss weights and matching costs are the
    authors'.

    Args:
        mask_scale: sides of a mask over those of the finest map, which has stride 8.
        predicted_blocks: number of blocks that refine the map for a prediction. None: all, as for
            the last layer in training. The authors' evaluation uses 1, so their AP is with 1.
        loss_cls, loss_bbox, loss_iou, train_cfg, **kwargs: see ``DFINEHead``.

    Raises:
        ConfigError: if ``predicted_blocks`` is more than the decoder's layers.
    """

    # Overrides attributes of MaskedHead, which describes them.
    padding_mode = 'zeros'

    def __init__(
        self,
        mask_scale: Factor = 2.0,
        predicted_blocks: PositiveInt | None = None,
        loss_cls: Loss = dict(type='vit_plugin.MatchabilityAwareLoss', loss_weight=2.0),
        loss_bbox: Loss = dict(type='mmdet.L1Loss', loss_weight=1.0),
        loss_iou: Loss = dict(type='mmdet.GIoULoss', loss_weight=1.0),
        train_cfg: Matching | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            loss_cls=loss_cls,
            loss_bbox=loss_bbox,
            loss_iou=loss_iou,
            train_cfg=train_cfg or ECSEG_MATCHING,
            **kwargs,
        )
        self._build_masks(mask_scale)
        self.predicted_blocks = predicted_blocks or len(self.layers)
        if self.predicted_blocks > len(self.layers):
            raise ConfigError(
                f'ECSegHead: predicted_blocks={predicted_blocks} must be at most '
                f'{len(self.layers)}, one for each layer of the decoder.'
            )

    @property
    def _num_refining_blocks(self) -> int:
        return self.predicted_blocks

    def forward(self, x: Sequence[Tensor], sizes: Any = None, noised: Any = None) -> Any:
        """See the base class.

        In training, the outputs include both factors of each layer's masks: the elements of a map,
        and queries.
        """
        outputs = super().forward(x, sizes, noised)
        if not self.training:
            return outputs
        _, *maps = self.masks.maps(x[0])
        pairs = zip(maps, outputs.features, strict=True)
        elements, queries = zip(*(self.masks.factors(*pair) for pair in pairs), strict=True)
        return outputs._replace(
            mask_elements=torch.stack(elements), mask_queries=torch.stack(queries)
        )

    def _layers_of(self, outputs: Any, queries: slice) -> dict[str, InstanceData]:
        """See the base class. Each layer also gets both factors of its masks."""
        layers = super()._layers_of(outputs, queries)
        last = len(outputs.mask_elements) - 1
        for i, layer in enumerate(layers.values()):
            # The first boxes, which come last, have the last layer's masks.
            mask_layer = min(i, last)
            self._set_factors(
                layer,
                outputs.mask_elements[mask_layer],
                outputs.mask_queries[mask_layer][:, queries],
            )
        return layers

    def _layer_losses(
        self, layer: InstanceData, objects: InstanceData, for_classes: Any, for_boxes: Any = None
    ) -> dict[str, Tensor]:
        """See the base class. Adds the losses of masks if the layer has masks."""
        losses = super()._layer_losses(layer, objects, for_classes, for_boxes)
        if 'mask_elements' not in layer:
            return losses
        pairs, per_image = for_classes.pairs.unbind(), for_classes.pairs_per_image
        return losses | self._mask_losses(layer, objects, pairs, per_image, for_classes.avg_factor)
