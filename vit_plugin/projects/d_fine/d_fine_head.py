"""D-FINE's head in MMDetection: a DETR decoder that predicts a distribution for each box edge.

``fine_boxes.py`` explains the distributions.
"""

from typing import Any

import torch
from mmengine.model import constant_init
from mmengine.structures import InstanceData
from torch import Tensor, nn
from typing_extensions import TypedDict

from vit_plugin.arguments.fields import NotNegative, Positive, PositiveInt, Section
from vit_plugin.errors import ConfigError, needed_by
from vit_plugin.importable import make_importable
from vit_plugin.projects.detr_family.decoder_memory import DecoderMemory
from vit_plugin.registry import MODELS

from .fine_boxes import bin_values, decode_boxes, encode_boxes, expected_distances
from .fine_losses import distillation_loss, localization_loss
from .location_quality import LocationQuality

with needed_by('DFINEHead'):
    make_importable()
    from mmdet.models.layers import inverse_sigmoid

    from .noised_detr_head import Matched, QueryOutputs, layer_outputs
    from .proposing_head import ProposingHead, VariantName


class Distributions(TypedDict, total=False):
    """Settings of the distributions that predict the edges of boxes.

    Attributes:
        bins: number of bins of a distribution minus one, an even number. Default: 32.
        up, scale: see :func:`~.fine_boxes.bin_values`. Default: 0.5 and 4.
        top, quality_channels, quality_layers: options of :class:`LocationQuality`. Default: 4, 64
            and 2.
        shared: whether all layers share one MLP for the distributions. Default: False.
        localization, distillation: weights of the two losses. Default: 0.15 and 1.5.
    """

    bins: PositiveInt
    up: Positive
    scale: Positive
    top: PositiveInt
    quality_channels: PositiveInt
    quality_layers: PositiveInt
    shared: bool
    localization: NotNegative
    distillation: NotNegative


@MODELS.register_module()
class DFINEHead(ProposingHead):
    """The decoder of D-FINE (arXiv:2410.13842), DEIMv2 and ECDet, with their losses.

    The first layer predicts boxes. From these, all layers refine distributions of the distances by
    which the edges move.

    Args:
        num_classes, variant, joint_matching: see :class:`ProposingHead`.
        distributions: see :class:`Distributions`.
        **kwargs: see :class:`ProposingHead`. ``loss_cls``, ``loss_bbox`` and ``loss_iou`` are also
            those of the first boxes.

    Raises:
        ConfigError: see :class:`ProposingHead`, and if ``bins`` or ``top`` do not fit.
    """

    def __init__(
        self,
        num_classes: PositiveInt,
        variant: VariantName = 'd_fine',
        distributions: Distributions | None = None,
        joint_matching: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(num_classes, variant=variant, joint_matching=joint_matching, **kwargs)
        options: Section = dict(distributions or {})
        self.localization_weight = options.pop('localization', 0.15)
        self.distillation_weight = options.pop('distillation', 1.5)
        self._build_distributions(**options)

    def _build_distributions(
        self,
        bins: int = 32,
        up: float = 0.5,
        scale: float = 4.0,
        top: int = 4,
        quality_channels: int = 64,
        quality_layers: int = 2,
        shared: bool = False,
    ) -> None:
        if bins % 2 or bins < 4 or top > bins + 1:
            raise ConfigError(
                f'DFINEHead: distributions.bins={bins} must be an even number from 4 on, and '
                f'distributions.top={top} at most one more.'
            )
        self.bins, outputs = bins, 4 * (bins + 1)
        self.register_buffer('up', torch.tensor([float(up)]))
        self.register_buffer('scale', torch.tensor([float(scale)]))
        self.fc_first, first_reg = self.box_mlp(), self.box_mlp(outputs)
        self.fc_reg = nn.ModuleList(
            first_reg if shared or i == 0 else self.box_mlp(outputs)
            for i in range(len(self.layers))
        )
        if shared:
            self.register_load_state_dict_pre_hook(_fill_shared)
        self.quality = nn.ModuleList(
            LocationQuality(top, quality_channels, quality_layers, self.variant.act)
            for _ in self.layers
        )

    def init_weights(self) -> None:
        """See the base class. Before training, the first boxes equal the proposals."""
        super().init_weights()
        constant_init(self.fc_first.layers[-1], 0)

    def _decode(
        self,
        content: Tensor,
        references: Tensor,
        memory: DecoderMemory,
        attn_mask: Tensor | None,
        is_padded: bool,
    ) -> dict[str, Tensor]:
        """See the base class.

        Each layer refines the logits of the distributions, which move the edges of the
        first boxes.
        """
        values = bin_values(self.bins, self.up, self.scale).to(references)
        ratios = memory.ratios.repeat(1, 1, 2)[:, None]  # (B, 1, levels, 4)
        query, boxes, previous_query = content, references, torch.zeros_like(content)
        edge_logits = references.new_zeros(())  # each layer adds to the logits of the one before
        outs: list[tuple[Tensor, ...]] = []
        last = len(self.layers) - 1
        for i, layer in enumerate(self.layers):
            if i == 0 or self.variant.position_follows_boxes:
                # Clamped as in the authors' code.
                position = self.position(boxes.to(content)).clamp(-10, 10)
            query = layer(query, position, boxes[:, :, None] * ratios, memory, attn_mask, is_padded)
            if i == 0:
                deltas = self.fc_first(query).to(boxes)
                first_boxes = (deltas + inverse_sigmoid(boxes, eps=1e-5)).sigmoid()
                first_logits = self.fc_cls[0](query)
            edge_logits = self.fc_reg[i](query + previous_query).to(boxes) + edge_logits
            distances = expected_distances(edge_logits, values)
            moved = decode_boxes(first_boxes.detach(), distances, self.scale.to(boxes))
            boxes, previous_query = moved.detach(), query.detach()
            if self.training or i == last:
                logits = self.quality[i](self.fc_cls[i](query), edge_logits.to(content))
                outs.append((logits, moved, query, edge_logits))
        stacked = (torch.stack(parts) for parts in zip(*outs, strict=True))
        return dict(
            zip(('logits', 'boxes', 'features', 'edge_logits'), stacked, strict=True),
            first_logits=first_logits,
            first_boxes=first_boxes,
        )

    def _layers_of(self, outputs: QueryOutputs, queries: slice) -> dict[str, InstanceData]:
        """See the base class. The prefix ``first_`` is for the boxes before the distributions."""
        layers = super()._layers_of(outputs, queries)
        edge_logits: Any = outputs.edge_logits
        first_logits: Any = outputs.first_logits
        first_boxes: Any = outputs.first_boxes
        distilled = dict(  # the other layers learn these from the last one
            last_edge_logits=edge_logits[-1][:, queries].detach(),
            confidence=outputs.logits[-1][:, queries].detach().sigmoid().amax(-1),
        )
        for i, (name, layer) in enumerate(layers.items()):
            fields = dict(
                edge_logits=edge_logits[i][:, queries],
                first_boxes=first_boxes[:, queries].detach(),
            )
            if name:  # the last layer has the prefix ''
                fields |= distilled
            for field, value in fields.items():
                layer.set_field(value.to(layer.boxes.dtype), field)
        return layers | {'first_': layer_outputs(first_logits[:, queries], first_boxes[:, queries])}

    def _distribution_losses(
        self, layer: InstanceData, goal: Tensor, ious: Tensor, matched: Matched
    ) -> dict[str, Tensor]:
        """The losses of the distributions: localization, and distillation from the last layer."""
        if 'edge_logits' not in layer:
            return {}
        (queries, _), count, group_sizes, _ = matched
        edge_logits = layer.edge_logits.flatten(0, 1)
        first_boxes = layer.first_boxes.flatten(0, 1)
        values = bin_values(self.bins, self.up, self.scale).to(edge_logits)
        bins = encode_boxes(first_boxes[queries], goal, values, self.scale.to(edge_logits))
        localization = localization_loss(edge_logits[queries], bins, ious) / count
        losses = dict(fgl=self.localization_weight * localization)
        if 'last_edge_logits' in layer:
            losses['ddf'] = self.distillation_weight * distillation_loss(
                edge_logits,
                layer.last_edge_logits.flatten(0, 1),
                layer.confidence.flatten(),
                queries,
                ious,
                group_sizes,
            )
        return losses


def _fill_shared(head: nn.Module, state: dict[str, Tensor], prefix: str, *_: Any) -> None:
    """Copy the parameters of the shared MLP, which some files store once, to every layer.

    Called by torch before ``head`` loads ``state``.
    """
    first = 'fc_reg.0.'
    parameters = [key.removeprefix(first) for key in head.state_dict() if key.startswith(first)]
    for parameter in parameters:
        names = [f'{prefix}fc_reg.{i}.{parameter}' for i in range(len(head.layers))]
        stored = [state[name] for name in names if name in state]
        for name in names if stored else ():
            state.setdefault(name, stored[0])
