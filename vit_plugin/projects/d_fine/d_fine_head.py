"""D-FINE's head in MMDetection: a DETR decoder that predicts a distribution for each side."""

from typing import Any

import torch
from mmengine.model import constant_init
from mmengine.structures import InstanceData
from torch import Tensor, nn
from typing_extensions import TypedDict

from vit_plugin.arguments.fields import NotNegative, PositiveInt, Section
from vit_plugin.errors import ConfigError, needed_by
from vit_plugin.importable import make_importable
from vit_plugin.projects.detr_family.decoder_memory import DecoderMemory
from vit_plugin.registry import MODELS

from .fine_boxes import bin_values, decoded, distances, encoded
from .fine_decoder import LocationQuality
from .fine_losses import distillation_loss, localization_loss

with needed_by('DFINEHead'):
    make_importable()
    from mmdet.models.layers import inverse_sigmoid

    from .noised_detr_head import Matched, QueryOutputs, layer_of
    from .proposing_head import ProposingHead, VariantName


class Distributions(TypedDict, total=False):
    """Settings of the distributions that predict the sides of boxes.

    Attributes:
        bins: number of bins of a distribution minus one. Default: 32.
        up, scale: reach and curvature of the bins. Default: 0.5 and 4.
        top, quality_channels, quality_layers: of :class:`LocationQuality`. Default: 4, 64 and 2.
        shared: whether all layers have the same distributions' MLP. Default: False.
        localization, distillation: weights of the two losses. Default: 0.15 and 1.5.
    """

    bins: PositiveInt
    up: NotNegative
    scale: NotNegative
    top: PositiveInt
    quality_channels: PositiveInt
    quality_layers: PositiveInt
    shared: bool
    localization: NotNegative
    distillation: NotNegative


@MODELS.register_module()
class DFINEHead(ProposingHead):
    """The decoder of D-FINE (arXiv:2410.13842), DEIMv2 and ECDet, with their losses.

    Its layers refine distributions of the distances of a box's sides.

    Args:
        num_classes, variant, joint_matching: see :class:`ProposingHead`.
        distributions: see :class:`Distributions`.
        **kwargs: see :class:`ProposingHead`. ``loss_cls``, ``loss_bbox`` and ``loss_iou`` are also
            those of the first boxes.

    Raises:
        ConfigError: see :class:`ProposingHead`, and if there are no such distributions.
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
        self.weights = options.pop('localization', 0.15), options.pop('distillation', 1.5)
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
        self.fc_first, one = self.box_mlp(), self.box_mlp(outputs)
        self.fc_reg = nn.ModuleList(
            one if shared or not i else self.box_mlp(outputs) for i in range(len(self.layers))
        )
        if shared:
            self.register_load_state_dict_pre_hook(_fill_shared)
        self.quality = nn.ModuleList(
            LocationQuality(top, quality_channels, quality_layers, self.variant.act)
            for _ in self.layers
        )

    def init_weights(self) -> None:
        """See the base class. The first boxes are the proposals."""
        super().init_weights()
        constant_init(self.fc_first.layers[-1], 0)

    def _decode(
        self,
        content: Tensor,
        references: Tensor,
        memory: DecoderMemory,
        hidden: Tensor | None,
        padded: bool,
    ) -> dict[str, Tensor]:
        """See the base class.

        Each layer refines the logits of the distributions, which move the sides of the first boxes.
        """
        values = bin_values(self.bins, self.up, self.scale).to(references)
        ratios = memory.ratios.repeat(1, 1, 2)[:, None]  # (B, 1, levels, 4)
        query, boxes, before = content, references, torch.zeros_like(content)
        sides = references.new_zeros(())
        outs: list[tuple[Tensor, ...]] = []
        last = len(self.layers) - 1
        for i, layer in enumerate(self.layers):
            if not i or self.variant.moves:
                position = self.position(boxes.to(content)).clamp(-10, 10)
            query = layer(query, position, boxes[:, :, None] * ratios, memory, hidden, padded)
            if not i:
                moves = self.fc_first(query).to(boxes)
                first = (moves + inverse_sigmoid(boxes, eps=1e-5)).sigmoid()
                first_logits = self.fc_cls[0](query)
            sides = self.fc_reg[i](query + before).to(boxes) + sides
            moved = decoded(first.detach(), distances(sides, values), self.scale.to(boxes))
            boxes, before = moved.detach(), query.detach()
            if self.training or i == last:
                logits = self.quality[i](self.fc_cls[i](query), sides.to(content))
                outs.append((logits, moved, query, sides))
        stacked = (torch.stack(parts) for parts in zip(*outs, strict=True))
        return dict(
            zip(('logits', 'boxes', 'features', 'sides'), stacked, strict=True),
            first_logits=first_logits,
            first_boxes=first,
        )

    def _layers_of(self, outputs: QueryOutputs, part: slice) -> dict[str, InstanceData]:
        """See the base class. ``first_`` are the boxes before the distributions."""
        layers = super()._layers_of(outputs, part)
        sides: Any = outputs.sides
        first_logits: Any = outputs.first_logits
        first: Any = outputs.first_boxes
        taught = dict(
            last_sides=sides[-1][:, part].detach(),
            confidence=outputs.logits[-1][:, part].detach().sigmoid().amax(-1),
        )
        for i, (name, layer) in enumerate(layers.items()):
            more = dict(sides=sides[i][:, part], first=first[:, part].detach())
            for field, value in {**more, **(taught if name else {})}.items():
                layer.set_field(value.to(layer.boxes.dtype), field)
        return layers | {'first_': layer_of(first_logits[:, part], first[:, part])}

    def _side_losses(
        self, layer: InstanceData, goal: Tensor, overlaps: Tensor, matched: Matched
    ) -> dict[str, Tensor]:
        """The losses of the distributions: localization, and distillation from the last layer."""
        if 'sides' not in layer:
            return {}
        (rows, _), count, numbers, _ = matched
        sides, first = layer.sides.flatten(0, 1), layer.first.flatten(0, 1)
        values = bin_values(self.bins, self.up, self.scale).to(sides)
        bins = encoded(first[rows], goal, values, self.scale.to(sides))
        localization, distillation = self.weights
        losses = dict(fgl=localization * localization_loss(sides[rows], bins, overlaps) / count)
        if 'last_sides' in layer:
            losses['ddf'] = distillation * distillation_loss(
                sides,
                layer.last_sides.flatten(0, 1),
                layer.confidence.flatten(),
                rows,
                overlaps,
                numbers,
            )
        return losses


def _fill_shared(head: nn.Module, state: dict[str, Tensor], prefix: str, *_: Any) -> None:
    """Copy shared parameters, which files store once, to every layer."""
    for name in [name for name in head.state_dict() if name.startswith('fc_reg.0.')]:
        names = [f'{prefix}fc_reg.{i}.{name[len("fc_reg.0.") :]}' for i in range(len(head.layers))]
        stored = [state[name_of_layer] for name_of_layer in names if name_of_layer in state]
        for name_of_layer in names if stored else ():
            state.setdefault(name_of_layer, stored[0])
