"""The losses of RT-DETR, D-FINE, DEIMv2 and ECDet: of layers, proposals and noised objects.

Noised objects are the denoising queries of DINO (arXiv:2203.03605).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from mmengine.structures import InstanceData
from torch import Tensor
from typing_extensions import TypedDict

from vit_plugin.arguments.fields import Count, NotNegative
from vit_plugin.errors import needed_by
from vit_plugin.importable import make_importable

from .noised_objects import make_noised_objects

with needed_by('RTDETRHead'):
    make_importable()
    from mmdet.models.losses import QualityFocalLoss
    from mmdet.structures.bbox import bbox_cxcywh_to_xyxy, bbox_overlaps, bbox_xyxy_to_cxcywh
    from mmdet.utils import reduce_mean

    from vit_plugin.projects.detr_family.grouped_detr_head import GroupedDETRHead
    from vit_plugin.projects.detr_family.matching import assign_queries, joint_pairs


class Noise(TypedDict, total=False):
    """Settings for denoising, see :func:`make_noised_objects`.

    Attributes:
        number: ``max_pairs``. 0: no denoising. Default: 100.
        labels, boxes: ``label_noise`` and ``box_noise``. Default: 0.5 and 1.
    """

    number: Count
    labels: NotNegative
    boxes: NotNegative


class QueryOutputs(NamedTuple):
    """The outputs of a head. The queries of noised objects come first.

    Attributes:
        logits: logits of each layer (layers, B, Q, num_classes), or only of the last one outside of
            training.
        boxes: boxes of the same layers (layers, B, Q, 4) as (x, y, w, h), fractions of the image.
        features: the queries after the same layers (layers, B, Q, C).
        proposed_logits, proposed_boxes: logits and boxes of the proposals (B, num_queries, ...).
        edge_logits: logits of the distributions of the boxes' edges (layers, B, Q, 4 * (bins + 1)),
            if the head has these.
        first_logits, first_boxes: logits and boxes of the first layer, before its distributions
            (B, Q, ...).
        mask_elements, mask_queries: maps (layers, B, C, h, w) and queries (layers, B, Q, C), whose
            products are masks, if the head has masks.
    """

    logits: Tensor
    boxes: Tensor
    features: Tensor
    proposed_logits: Tensor
    proposed_boxes: Tensor
    edge_logits: Tensor | None = None
    first_logits: Tensor | None = None
    first_boxes: Tensor | None = None
    mask_elements: Tensor | None = None
    mask_queries: Tensor | None = None


class Matched(NamedTuple):
    """Matched queries and objects of a batch.

    Attributes:
        pairs: indices of the queries and of their objects in the batch (2, M).
        avg_factor: average number of pairs per GPU, at least 1, by which sums are divided.
        group_sizes: numbers of matched and of unmatched queries, both without noised objects.
        pairs_per_image: number of pairs of each image; empty for the joint matching of all layers.
    """

    pairs: Tensor
    avg_factor: Tensor
    group_sizes: tuple[int, int]
    pairs_per_image: Sequence[int] = ()


class NoisedDETRHead(GroupedDETRHead):
    """A :class:`GroupedDETRHead` of one group that also learns from noised objects.

    All layers are matched after a single copy of the costs to the CPU.

    A subclass has the forward of :class:`~vit_plugin.projects.d_fine.proposing_head.ProposingHead`.

    Args:
        noise: see :class:`Noise`.
        joint_matching: whether boxes use the joint matching of all layers, instead of their layer's
            as classes do.
        *args, **kw: arguments of ``DETRHead``.
    """

    def __init__(self, noise: Noise | None, joint_matching: bool, *args: Any, **kw: Any) -> None:
        super().__init__(1, *args, **kw)
        self.noise = {'number': 100, 'labels': 0.5, 'boxes': 1.0, **(noise or {})}
        self.joint_matching = joint_matching

    def loss(self, x: Sequence[Tensor], batch_data_samples: Sequence[Any]) -> dict[str, Tensor]:
        """The losses of each layer. ``enc_`` is for proposals, and ``dn_`` for noised objects."""
        sizes = self.sizes_of(batch_data_samples, x[0])
        ends = sizes[0].flip(1).repeat(1, 2)  # widths and heights (B, 4), twice
        images = [self._objects(*image) for image in zip(batch_data_samples, ends, strict=True)]
        boxes = [bbox_xyxy_to_cxcywh(image.bboxes / image.ends) for image in images]
        noised = make_noised_objects(
            [image.labels for image in images], boxes, *self._noise_options()
        )
        outputs = self(x, sizes, noised)
        num_noised = noised.labels.shape[1] if noised else 0
        layers = self._layers_of(outputs, slice(num_noised, None))
        layers['enc_'] = layer_outputs(outputs.proposed_logits, outputs.proposed_boxes)
        costs = [
            [self._cost(layer[i], image, ends[i]) for i, image in enumerate(images)]
            for layer in layers.values()
        ]
        layer_pairs, joint = self._pairs(costs)
        counts = ends.new_tensor(
            [layer_pairs.shape[-1], joint.shape[-1]], dtype=layers[''].boxes.dtype
        )
        count, joint_count = reduce_mean(counts).clamp(min=1)
        objects = InstanceData(
            **{name: torch.cat([image[name] for image in images]) for name in self.object_fields}
        )
        num_matched = (joint if len(joint[0]) else layer_pairs).shape[-1]
        group_sizes = num_matched, layers[''].logits[..., 0].numel() - num_matched
        pairs_per_image = [min(cost.shape) for cost in costs[0]]
        for_boxes = Matched(joint, joint_count, group_sizes) if len(joint[0]) else None
        losses: dict[str, Tensor] = {}
        for (prefix, layer), pairs in zip(layers.items(), layer_pairs.unbind(1), strict=True):
            matched = Matched(pairs, count, group_sizes, pairs_per_image)
            losses |= _named(prefix, self._layer_losses(layer, objects, matched, for_boxes))
        if noised is not None:
            noised_pairs = torch.stack((noised.queries, noised.objects))
            pairs_per_image = [noised.groups * len(image) for image in images]
            matched = Matched(noised_pairs, count * noised.groups, group_sizes, pairs_per_image)
            for prefix, layer in self._layers_of(outputs, slice(None, num_noised)).items():
                losses |= _named(f'dn_{prefix}', self._layer_losses(layer, objects, matched))
        return losses

    def _noise_options(self) -> tuple[Any, ...]:
        """The arguments of :func:`make_noised_objects` after labels and boxes."""
        return self.num_classes, self.noise['number'], self.noise['labels'], self.noise['boxes']

    def _pairs(self, costs: Sequence[Sequence[Tensor]]) -> tuple[Tensor, Tensor]:
        """The pairs of each layer (2, layers, M), and the joint pairs of all layers (2, U).

        U is 0 without ``joint_matching``. Both are copied to the GPU together.
        """
        layer_pairs = assign_queries(costs, 1)
        joint = joint_pairs(layer_pairs) if self.joint_matching else layer_pairs[:, :0, 0]
        flat = np.concatenate((layer_pairs.reshape(2, -1), joint), axis=1)
        both = torch.from_numpy(flat).to(costs[0][0].device)
        layers = both[:, : layer_pairs[0].size].unflatten(1, layer_pairs.shape[1:])
        return layers, both[:, layer_pairs[0].size :]

    def _layers_of(self, outputs: QueryOutputs, queries: slice) -> dict[str, InstanceData]:
        """The outputs of each layer for some queries, by the prefix of the layer's losses.

        Args:
            outputs: the outputs of the head.
            queries: the slice of the queries.
        """
        last = len(outputs.logits) - 1
        return {
            '' if i == last else f'd{i}.': layer_outputs(logits[:, queries], boxes[:, queries])
            for i, (logits, boxes) in enumerate(zip(outputs.logits, outputs.boxes, strict=True))
        }

    def _layer_losses(
        self,
        layer: InstanceData,
        objects: InstanceData,
        for_classes: Matched,
        for_boxes: Matched | None = None,
    ) -> dict[str, Tensor]:
        """The losses of a layer.

        Args:
            layer: the outputs of the layer.
            objects: the objects of the batch.
            for_classes: the pairs that classes learn from.
            for_boxes: the pairs that boxes learn from. None: ``for_classes``.
        """
        queries, matched = for_classes.pairs
        logits = layer.logits.flatten(0, 1)
        ious = self._ious(layer, objects, for_classes.pairs)
        labels = torch.full_like(logits[:, 0], self.num_classes, dtype=torch.long)
        quality = torch.zeros_like(logits[:, 0])
        labels[queries] = objects.labels[matched]
        quality[queries] = ious
        targets = (labels, quality) if isinstance(self.loss_cls, QualityFocalLoss) else labels
        losses = dict(cls=self.loss_cls(logits, targets, avg_factor=for_classes.avg_factor))
        if for_boxes is not None:
            queries, matched = for_boxes.pairs
            ious = self._ious(layer, objects, for_boxes.pairs)
        count = (for_boxes or for_classes).avg_factor
        boxes, ends = layer.boxes.flatten(0, 1)[queries], objects.ends[matched]
        bboxes = objects.bboxes[matched]
        corners, goal = bbox_cxcywh_to_xyxy(boxes) * ends, bbox_xyxy_to_cxcywh(bboxes / ends)
        # Average here, since the losses' own average adds an epsilon to the count.
        losses['bbox'] = self.loss_bbox(boxes, goal, reduction_override='sum') / count
        losses['iou'] = self.loss_iou(corners, bboxes, reduction_override='sum') / count
        return losses | self._distribution_losses(layer, goal, ious, for_boxes or for_classes)

    def _ious(self, layer: InstanceData, objects: InstanceData, pairs: Tensor) -> Tensor:
        """The IoUs of the boxes and objects of pairs (M), without gradients."""
        queries, matched = pairs
        boxes = layer.boxes.detach().flatten(0, 1)[queries]
        corners = bbox_cxcywh_to_xyxy(boxes) * objects.ends[matched]
        return bbox_overlaps(corners, objects.bboxes[matched], is_aligned=True).to(boxes)

    def _distribution_losses(
        self, layer: InstanceData, goal: Tensor, ious: Tensor, matched: Matched
    ) -> dict[str, Tensor]:
        """The losses of the edges' distributions, for subclasses that predict them.

        Args:
            layer: the outputs of a layer.
            goal: the target boxes (M, 4) of the matched queries.
            ious: IoUs of their predicted boxes with the target boxes (M).
            matched: these queries and their objects.
        """
        return {}


def _named(prefix: str, losses: dict[str, Tensor]) -> dict[str, Tensor]:
    """The losses of a layer by their names in the log."""
    return {f'{prefix}loss_{key}': value for key, value in losses.items()}


def layer_outputs(logits: Tensor, boxes: Tensor, **more: Tensor) -> InstanceData:
    """The outputs (B, Q, ...) of a layer in at least float32, with boxes clamped to the image."""
    dtype = torch.promote_types(logits.dtype, torch.float32)
    fields = dict(more, logits=logits, boxes=boxes.clamp(0, 1))
    return InstanceData(**{name: value.to(dtype) for name, value in fields.items()})
