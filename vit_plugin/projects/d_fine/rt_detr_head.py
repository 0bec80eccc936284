"""RT-DETR's head in MMDetection: each decoder layer refines the boxes of the queries."""

from typing import Any

import torch
from torch import Tensor, nn

from vit_plugin.arguments.fields import PositiveInt
from vit_plugin.errors import needed_by
from vit_plugin.importable import make_importable
from vit_plugin.projects.detr_family.decoder_memory import DecoderMemory
from vit_plugin.registry import MODELS

with needed_by('RTDETRHead'):
    make_importable()
    from mmdet.models.layers import inverse_sigmoid

    from .proposing_head import ProposingHead


@MODELS.register_module()
class RTDETRHead(ProposingHead):
    """The decoder of RT-DETR and RT-DETRv2 (arXiv:2304.08069, arXiv:2407.17140), with its losses.

    Args:
        num_classes: number of classes.
        **kwargs: see :class:`ProposingHead`.
    """

    def __init__(self, num_classes: PositiveInt, **kwargs: Any) -> None:
        super().__init__(num_classes, **kwargs)
        self.fc_reg = nn.ModuleList(self.box_mlp() for _ in self.layers)

    def _decode(
        self,
        content: Tensor,
        references: Tensor,
        memory: DecoderMemory,
        attn_mask: Tensor | None,
        is_padded: bool,
    ) -> dict[str, Tensor]:
        """See the base class.

        Boxes "look forward twice" (DINO, arXiv:2203.03605, Section 3.5): the loss sees boxes that
        are refined from ``previous_boxes`` with their gradient. The next layer gets detached ones.
        """
        ratios = memory.ratios.repeat(1, 1, 2)[:, None]  # (B, 1, levels, 4)
        query, previous_boxes = content, references
        outs: list[tuple[Tensor, ...]] = []
        last = len(self.layers) - 1
        for i, layer in enumerate(self.layers):
            boxes = previous_boxes.detach()
            if i == 0 or self.variant.position_follows_boxes:
                position = self.position(boxes.to(content))
            query = layer(query, position, boxes[:, :, None] * ratios, memory, attn_mask, is_padded)
            deltas = self.fc_reg[i](query).to(boxes)
            if self.training or i == last:
                refined = (deltas + inverse_sigmoid(previous_boxes, eps=1e-5)).sigmoid()
                outs.append((self.fc_cls[i](query), refined, query))
            previous_boxes = (deltas + inverse_sigmoid(boxes, eps=1e-5)).sigmoid()
        stacked = (torch.stack(parts) for parts in zip(*outs, strict=True))
        return dict(zip(('logits', 'boxes', 'features'), stacked, strict=True))
