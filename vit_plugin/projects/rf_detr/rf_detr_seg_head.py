"""RF-DETR-Seg's head in MMDetection: a mask for each query (arXiv:2511.09554)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mmengine.structures import InstanceData
from torch import Tensor

from vit_plugin.arguments.fields import Factor
from vit_plugin.projects.detr_family.masked_head import MaskedHead
from vit_plugin.registry import MODELS

# From the registry, since a project imports no other but its family.
Base: Any = object if TYPE_CHECKING else MODELS.get('vit_plugin.LWDETRHead')


@MODELS.register_module()
class RFDETRSegHead(MaskedHead, Base):
    """An ``LWDETRHead`` with the masks of RF-DETR-Seg.

    Args:
        mask_scale: side of a mask relative to that of the map. In the published models, the side of
            a mask is a quarter of the image's.
        **kwargs: see ``LWDETRHead``, with ``num_levels=1``.
    """

    def __init__(self, mask_scale: Factor, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._build_masks(mask_scale)

    @property
    def _num_refining_blocks(self) -> int:
        """See the base class: one for each layer of a prediction."""
        return self.test_cfg['num_layers']

    def _layer_outputs(self, x: Sequence[Tensor], *outputs: Tensor) -> list[InstanceData]:
        """See the base class. Each layer also gets both factors of its masks."""
        layers = super()._layer_outputs(x, *outputs)
        for level, layer in zip(self.masks.maps(x[0]), layers, strict=True):
            self._set_factors(layer, *self.masks.factors(level, layer.features))
        return layers

    def _losses(
        self, layer: InstanceData, objects: InstanceData, pairs: Any, count: Tensor
    ) -> dict[str, Tensor]:
        """See the base class. Adds the losses of masks."""
        queries, matched, numbers = pairs
        return dict(
            super()._losses(layer, objects, pairs, count),
            **self._mask_losses(layer, objects, (queries, matched), numbers, count),
        )
