"""D-FINE's head in MMDetection: a DETR decoder that predicts a distribution for each side."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from mmengine.model import bias_init_with_prob, constant_init
from mmengine.structures import InstanceData
from torch import Tensor, nn
from typing_extensions import TypedDict

from vit_plugin.arguments.fields import Count, InitConfig, NotNegative, PositiveInt, Section, Typed
from vit_plugin.errors import ConfigError, needed_by
from vit_plugin.importable import make_importable
from vit_plugin.models.layers.conv_norm import ConvNorm
from vit_plugin.projects.detr_family.decoder_memory import DecoderMemory, Sizes
from vit_plugin.registry import MODELS

from .fine_boxes import bin_values, decoded, distances, encoded
from .fine_decoder import (
    VARIANTS,
    FineDecoderCfg,
    FineDecoderLayer,
    LocationQuality,
    position_mlp,
)
from .fine_losses import distillation_loss, localization_loss
from .noised_objects import NoisedObjects, noised_objects

with needed_by('DFINEHead'):
    make_importable()
    from mmdet.models.layers import inverse_sigmoid
    from mmdet.models.layers.transformer import MLP
    from mmdet.models.losses import QualityFocalLoss
    from mmdet.structures.bbox import bbox_cxcywh_to_xyxy, bbox_overlaps, bbox_xyxy_to_cxcywh
    from mmdet.utils import reduce_mean

    from vit_plugin.projects.detr_family.grouped_detr_head import GroupedDETRHead
    from vit_plugin.projects.detr_family.matching import assigned, union

MATCHING = dict(
    assigner=dict(
        type='mmdet.HungarianAssigner',
        match_costs=[
            dict(type='mmdet.FocalLossCost', weight=2.0),
            dict(type='mmdet.BBoxL1Cost', weight=5.0, box_format='xywh'),
            dict(type='mmdet.IoUCost', iou_mode='giou', weight=2.0),
        ],
    )
)
EDGE = 0.01  # of the image: an element whose box comes closer to a border has no box to propose


class Loss(Typed, total=False):
    """A loss, with what else its class takes."""

    loss_weight: NotNegative


class Matching(TypedDict, total=False):
    """MMDetection's ``train_cfg`` of a DETR."""

    assigner: Typed


class MostBoxes(TypedDict, total=False):
    """Options of a prediction."""

    max_per_img: PositiveInt


class Distributions(TypedDict, total=False):
    """How a side of a box is predicted.

    Attributes:
        bins: bins of a distribution, less one. Default: 32.
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


class Noise(TypedDict, total=False):
    """The noised objects of a training, see :func:`noised_objects`.

    Attributes:
        number: of pairs of queries. 0: none. Default: 100.
        labels, boxes: how much noise they have. Default: 0.5 and 1.
    """

    number: Count
    labels: NotNegative
    boxes: NotNegative


class FineOutputs(NamedTuple):
    """What the head computes. The queries of noised objects come first.

    Attributes:
        logits: of each layer (layers, B, Q, num_classes); outside of a training of the last alone.
        boxes: the same (layers, B, Q, 4) as (x, y, w, h), fractions of the image.
        sides: logits of the distributions (layers, B, Q, 4 * (bins + 1)).
        features: of the last layer (B, Q, C).
        first_logits, first_boxes: of the first layer, before its distributions (B, Q, ...).
        proposed_logits, proposed_boxes: of the proposals (B, num_queries, ...).
    """

    logits: Tensor
    boxes: Tensor
    sides: Tensor
    features: Tensor
    first_logits: Tensor
    first_boxes: Tensor
    proposed_logits: Tensor
    proposed_boxes: Tensor


@MODELS.register_module()
class DFINEHead(GroupedDETRHead):
    """The decoder of D-FINE (arXiv:2410.13842), DEIMv2 and ECDet, with their losses.

    Elements of the maps propose boxes. The best become queries, whose layers refine distributions
    of the distances of a box's sides. It is the ``bbox_head`` of a ``SingleStageDetector`` with a
    :class:`HybridEncoder`. A training step waits for the GPU once.

    Args:
        num_classes: number of classes.
        num_queries: the number of queries, the most objects in an image.
        in_channels: channels of each map; other than ``embed_dims``, they are projected.
        embed_dims: channels of the queries.
        variant: the paper, a row of ``VARIANTS``.
        decoder: its layers, see :class:`FineDecoderCfg`.
        distributions: see :class:`Distributions`.
        noise: see :class:`Noise`.
        joint_matching: whether boxes learn from the pairs of all layers together; else from those
            of their own, as classes do.
        loss_cls, loss_bbox, loss_iou: losses of every layer, of its first boxes and of the
            proposals.
        train_cfg: MMDetection's, with a ``HungarianAssigner``. Default: D-FINE's costs.
        test_cfg: ``max_per_img``, the most boxes of an image.
        init_cfg: MMEngine's initialization config.

    Raises:
        ConfigError: if points or heads do not fit the maps. In the forward, if it gets other maps,
            or maps with fewer elements than queries.
    """

    outputs = ('boxes', 'scores', 'labels')  # of a graph, see `best`
    class_layers = ('fc_cls', 'proposal_cls')  # whose rows are classes

    def __init__(
        self,
        num_classes: PositiveInt,
        num_queries: PositiveInt = 300,
        in_channels: Sequence[PositiveInt] = (256, 256, 256),
        embed_dims: PositiveInt = 256,
        variant: Literal['d_fine', 'deimv2', 'ecdet'] = 'd_fine',
        decoder: FineDecoderCfg | None = None,
        distributions: Distributions | None = None,
        noise: Noise | None = None,
        joint_matching: bool = True,
        loss_cls: Loss = dict(type='vit_plugin.OverlapVarifocalLoss'),
        loss_bbox: Loss = dict(type='mmdet.L1Loss', loss_weight=5.0),
        loss_iou: Loss = dict(type='mmdet.GIoULoss', loss_weight=2.0),
        train_cfg: Matching | None = None,
        test_cfg: MostBoxes | None = None,
        init_cfg: InitConfig = None,
    ) -> None:
        most = num_queries * num_classes
        super().__init__(
            1,
            num_classes,
            embed_dims,
            loss_cls=loss_cls,
            loss_bbox=loss_bbox,
            loss_iou=loss_iou,
            train_cfg=train_cfg or MATCHING,
            test_cfg=dict(max_per_img=min(most, (test_cfg or {}).get('max_per_img', 300))),
            init_cfg=init_cfg,
        )
        self.num_queries, self.in_channels = num_queries, list(in_channels)
        self.variant, self.joint_matching = VARIANTS[variant], joint_matching
        self.noise = {'number': 100, 'labels': 0.5, 'boxes': 1.0, **(noise or {})}
        options: Section = dict(distributions or {})
        self.weights = options.pop('localization', 0.15), options.pop('distillation', 1.5)
        layer: Section = dict(decoder or {})
        num_layers = layer.pop('num_layers', 6)
        layer.setdefault('num_points', [4] * len(self.in_channels))
        if len(layer['num_points']) != len(self.in_channels):
            raise ConfigError(
                f'DFINEHead: decoder.num_points={layer["num_points"]} must have a number for each '
                f'of {len(self.in_channels)} maps.'
            )
        self._build_proposals()
        self._build_decoder(num_layers, layer, **options)

    def _init_layers(self) -> None:
        """MMDetection calls it before the sizes are known."""

    def _build_proposals(self) -> None:
        dims = self.embed_dims
        self.projections = nn.ModuleList(
            nn.Identity() if channels == dims else ConvNorm(channels, dims, 1, dict(type='BN'))
            for channels in self.in_channels
        )
        if self.variant.proposes:
            self.proposal_fc, self.proposal_norm = nn.Linear(dims, dims), nn.LayerNorm(dims)
        self.proposal_cls = nn.Linear(dims, self.num_classes)
        self.proposal_reg = MLP(dims, dims, 4, 3)
        if self.noise['number']:  # the last row is padding
            self.noised_classes = nn.Embedding(self.num_classes + 1, dims, self.num_classes)

    def _build_decoder(
        self,
        num_layers: int,
        layer: Section,
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
        dims, variant, number = self.embed_dims, self.variant, range(num_layers)
        self.bins = bins
        self.register_buffer('up', torch.tensor([float(up)]))
        self.register_buffer('scale', torch.tensor([float(scale)]))
        self.position = position_mlp(dims, variant)
        self.layers = nn.ModuleList(FineDecoderLayer(dims, variant, **layer) for _ in number)
        self.fc_first = MLP(dims, dims, 4, 3)
        self.fc_cls = nn.ModuleList(nn.Linear(dims, self.num_classes) for _ in number)
        one = MLP(dims, dims, 4 * (bins + 1), 3)
        self.fc_reg = nn.ModuleList(
            one if shared or not i else MLP(dims, dims, 4 * (bins + 1), 3) for i in number
        )
        if shared:
            self.register_load_state_dict_pre_hook(_fill_shared)
        self.quality = nn.ModuleList(
            LocationQuality(bins, top, quality_channels, quality_layers, variant.act)
            for _ in number
        )

    def init_weights(self) -> None:
        """Every box starts at its proposal, and every class with a score of 0.01."""
        super().init_weights()
        for fc_cls in (self.proposal_cls, *self.fc_cls):
            nn.init.constant_(fc_cls.bias, bias_init_with_prob(0.01))
        for fc_reg in (self.proposal_reg, self.fc_first, *self.fc_reg):
            constant_init(fc_reg.layers[-1], 0)

    def forward(
        self,
        x: Sequence[Tensor],
        sizes: Sizes | None = None,
        noised: NoisedObjects | None = None,
    ) -> FineOutputs:
        """Maps -> logits and boxes.

        Args:
            x: maps (B, C, h, w), from the finest.
            sizes: heights and widths of the images (B, 2), and those of the padded batch; None
                without padding.
            noised: noised objects, as further queries.
        """
        self._check_maps(x)
        maps = [layer(level) for layer, level in zip(self.projections, x, strict=True)]
        memory = DecoderMemory.of(maps, sizes)
        content, logits, proposals = self._propose(memory)
        references, hidden = proposals.detach(), None
        if noised is not None:
            content = torch.cat((self.noised_classes(noised.labels).to(content), content), dim=1)
            boxes = inverse_sigmoid(noised.boxes, eps=1e-5).sigmoid()
            references = torch.cat((boxes.to(references), references), dim=1)
            hidden = noised.hidden(self.num_queries)
        outs = self._decode(content, references, memory, hidden, sizes is not None)
        return FineOutputs._make((*outs, logits, proposals))

    def _check_maps(self, x: Sequence[Tensor]) -> None:
        """Raise a ``ConfigError`` for other maps, or fewer elements than queries."""
        if [level.shape[1] for level in x] != self.in_channels:
            raise ConfigError(
                f'DFINEHead got {[tuple(level.shape) for level in x]} but takes maps (B, C, h, w) '
                f'of in_channels={self.in_channels}: change these, or the neck.'
            )
        positions = sum(level[0, 0].numel() for level in x)
        if self.num_queries > positions:
            raise ConfigError(
                f'DFINEHead has {self.num_queries} queries, and the maps only {positions} '
                'positions; give larger images, or fewer num_queries.'
            )

    def _propose(self, memory: DecoderMemory) -> tuple[Tensor, Tensor, Tensor]:
        """Content (B, Q, C), logits and boxes of the best proposals."""
        anchors = memory.anchors
        valid = ((anchors > EDGE) & (anchors < 1 - EDGE)).all(-1, keepdim=True)
        valid = valid & ~memory.padding[..., None]  # (B, N, 1)
        features = memory.elements * valid
        if self.variant.proposes:
            features = self.proposal_norm(self.proposal_fc(features))
        logits = self.proposal_cls(features)
        best = logits.max(-1).values.topk(self.num_queries, dim=1).indices[..., None]
        anchors = torch.where(valid, anchors.logit(), torch.inf)
        features, anchors, logits = (
            part.gather(1, best.expand(-1, -1, part.shape[-1]))
            for part in (features, anchors, logits)
        )
        moves = self.proposal_reg(features)
        return features.detach(), logits, (moves.to(anchors) + anchors).sigmoid()

    def _decode(
        self,
        content: Tensor,
        references: Tensor,
        memory: DecoderMemory,
        hidden: Tensor | None,
        padded: bool,
    ) -> tuple[Tensor, ...]:
        """Queries (B, Q, C) at boxes (B, Q, 4) -> the parts of :class:`FineOutputs` but the last.

        Each layer adds to the logits of the distributions, which move the sides of the first boxes.
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
                outs.append((logits, moved, sides))
        stacked = (torch.stack(parts) for parts in zip(*outs, strict=True))
        return *stacked, query, first_logits, first

    def loss(self, x: Sequence[Tensor], batch_data_samples: Sequence[Any]) -> dict[str, Tensor]:
        """The losses of every layer.

        ``enc_`` are those of the proposals, ``first_`` those of the first boxes, ``dn_`` those of
        noised objects.
        """
        sizes = self.sizes_of(batch_data_samples, x[0])
        ends = sizes[0].flip(1).repeat(1, 2)  # widths and heights (B, 4), twice
        images = [self._objects(*image) for image in zip(batch_data_samples, ends, strict=True)]
        boxes = [bbox_xyxy_to_cxcywh(image.bboxes / image.ends) for image in images]
        noised = noised_objects([image.labels for image in images], boxes, *self._noise_options())
        outputs = self(x, sizes, noised)
        number = noised.labels.shape[1] if noised else 0
        layers = self._layers_of(outputs, number)
        costs = [
            [self._cost(layer[i], image, ends[i]) for i, image in enumerate(images)]
            for layer in layers.values()
        ]
        own, joint = self._pairs(costs)
        numbers = ends.new_tensor([own.shape[-1], joint.shape[-1]], dtype=layers[''].boxes.dtype)
        count, all_count = reduce_mean(numbers).clamp(min=1)
        objects = InstanceData(
            **{name: torch.cat([image[name] for image in images]) for name in self.compared}
        )
        losses = {
            f'{name}loss_{key}': value
            for (name, layer), pairs in zip(layers.items(), own.unbind(1), strict=True)
            for key, value in self._fine_losses(
                layer, objects, (pairs, count), (joint, all_count) if len(joint[0]) else None
            ).items()
        }
        if noised is not None:
            pairs = torch.stack((noised.queries, noised.objects)), count * noised.groups
            for name, layer in self._layers_of(outputs, number, noised=True).items():
                found = self._fine_losses(layer, objects, pairs, pairs)
                losses |= {f'dn_{name}loss_{key}': value for key, value in found.items()}
        return losses

    def _noise_options(self) -> tuple[Any, ...]:
        return self.num_classes, self.noise['number'], self.noise['labels'], self.noise['boxes']

    def _pairs(self, costs: Sequence[Sequence[Tensor]]) -> tuple[Tensor, Tensor]:
        """The pairs of each layer (2, layers, M), and those for boxes (2, U), in one copy."""
        own = assigned(costs, 1)
        joint = union(own) if self.joint_matching else own[:, :0, 0]
        flat = np.concatenate((own.reshape(2, -1), joint), axis=1)
        both = torch.from_numpy(flat).to(costs[0][0].device)
        layers = both[:, : own[0].size].unflatten(1, own.shape[1:])
        return layers, both[:, own[0].size :]

    def _layers_of(
        self, outputs: FineOutputs, number: int, noised: bool = False
    ) -> dict[str, InstanceData]:
        """Outputs by the beginnings of the names of losses, in at least float32.

        Args:
            outputs: what the forward returned.
            number: of the queries of noised objects.
            noised: whether to give theirs, in place of all others'.
        """
        part = slice(None, number) if noised else slice(number, None)
        dtype = torch.promote_types(outputs.logits.dtype, torch.float32)

        def layer(logits: Tensor, boxes: Tensor, **more: Tensor) -> InstanceData:
            every = dict(more, logits=logits, boxes=boxes.clamp(0, 1))
            return InstanceData(**{name: value.to(dtype) for name, value in every.items()})

        found = {'first_': layer(outputs.first_logits[:, part], outputs.first_boxes[:, part])}
        if not noised:
            found['enc_'] = layer(outputs.proposed_logits, outputs.proposed_boxes)
        last = len(outputs.logits) - 1
        first, last_logits, last_sides = (
            value[:, part].detach()
            for value in (outputs.first_boxes, outputs.logits[-1], outputs.sides[-1])
        )
        confidence = last_logits.sigmoid().amax(-1)
        for i in range(last + 1):
            parts = (value[i][:, part] for value in outputs[:3])
            logits, boxes, sides = parts
            taught = dict(last_sides=last_sides, confidence=confidence) if i < last else {}
            found['' if i == last else f'd{i}.'] = layer(
                logits, boxes, sides=sides, first=first, **taught
            )
        return found

    def _fine_losses(
        self,
        layer: InstanceData,
        objects: InstanceData,
        own: tuple[Tensor, Tensor],
        joint: tuple[Tensor, Tensor] | None,
    ) -> dict[str, Tensor]:
        """The losses of a layer.

        Args:
            layer: its outputs.
            objects: those of the batch.
            own: the pairs (2, M) from which classes learn, and their number over all GPUs.
            joint: those from which boxes learn; None: the same.
        """
        (rows, matched), count = own
        logits = layer.logits.flatten(0, 1)
        labels = torch.full_like(logits[:, 0], self.num_classes, dtype=torch.long)
        quality = torch.zeros_like(logits[:, 0])
        labels[rows] = objects.labels[matched]
        quality[rows] = self._overlaps(layer, objects, rows, matched)
        wanted = (labels, quality) if isinstance(self.loss_cls, QualityFocalLoss) else labels
        losses = dict(cls=self.loss_cls(logits, wanted, avg_factor=count))
        (rows, matched), count = joint or own
        boxes, ends = layer.boxes.flatten(0, 1)[rows], objects.ends[matched]
        bboxes = objects.bboxes[matched]
        corners, goal = bbox_cxcywh_to_xyxy(boxes) * ends, bbox_xyxy_to_cxcywh(bboxes / ends)
        # Not their own average, which adds an epsilon to the count.
        losses['bbox'] = self.loss_bbox(boxes, goal, reduction_override='sum') / count
        losses['iou'] = self.loss_iou(corners, bboxes, reduction_override='sum') / count
        if 'sides' in layer:
            overlaps = self._overlaps(layer, objects, rows, matched)
            losses |= self._side_losses(layer, goal, rows, overlaps, count)
        return losses

    def _overlaps(
        self, layer: InstanceData, objects: InstanceData, rows: Tensor, matched: Tensor
    ) -> Tensor:
        """Of these boxes with their objects (M), without gradients."""
        boxes = layer.boxes.detach().flatten(0, 1)[rows]
        corners = bbox_cxcywh_to_xyxy(boxes) * objects.ends[matched]
        return bbox_overlaps(corners, objects.bboxes[matched], is_aligned=True).to(boxes)

    def _side_losses(
        self, layer: InstanceData, goal: Tensor, rows: Tensor, overlaps: Tensor, count: Tensor
    ) -> dict[str, Tensor]:
        """Those of the distributions: localization, and what is learned from the last layer."""
        sides, first = layer.sides.flatten(0, 1), layer.first.flatten(0, 1)
        values = bin_values(self.bins, self.up, self.scale).to(sides)
        bins = encoded(first[rows], goal, values, self.scale.to(sides))
        localization, distillation = self.weights
        losses = dict(fgl=localization * localization_loss(sides[rows], bins, overlaps) / count)
        if 'last_sides' in layer:
            losses['ddf'] = distillation * distillation_loss(
                sides, layer.last_sides.flatten(0, 1), layer.confidence.flatten(), rows, overlaps
            )
        return losses

    def predict(
        self, x: Sequence[Tensor], batch_data_samples: Sequence[Any], rescale: bool = True
    ) -> list[Any]:
        """The boxes, scores and classes of each image, best first."""
        logits, boxes, *_ = self(x, self.sizes_of(batch_data_samples, x[0]))
        metas = [sample.metainfo for sample in batch_data_samples]
        return self.predict_by_feat(logits, boxes, metas, rescale=rescale)

    def best(self, x: Sequence[Tensor], sizes: Sizes) -> tuple[Tensor, ...]:
        """Maps -> what is predicted, best first, for a graph.

        Returns:
            Boxes (B, N, 4) as fractions, scores (B, N), classes (B, N), and features (B, N, C).
        """
        outputs = self(x, sizes)
        dtype = torch.promote_types(outputs.logits.dtype, torch.float32)
        every = outputs.logits[-1].to(dtype).sigmoid().flatten(1)
        scores, best = every.topk(self.test_cfg['max_per_img'])
        rows = (best // self.num_classes)[..., None]
        boxes, features = (
            part.gather(1, rows.expand(-1, -1, part.shape[-1]))
            for part in (outputs.boxes[-1].to(dtype), outputs.features)
        )
        return boxes, scores, best % self.num_classes, features


def _fill_shared(head: nn.Module, state: dict[str, Tensor], prefix: str, *_: Any) -> None:
    """Give each layer the parameters that all layers share, which files have once."""
    for name in [name for name in head.state_dict() if name.startswith('fc_reg.0.')]:
        names = [f'{prefix}fc_reg.{i}.{name[len("fc_reg.0.") :]}' for i in range(len(head.layers))]
        found = [state[one] for one in names if one in state]
        for one in names if found else ():
            state.setdefault(one, found[0])
