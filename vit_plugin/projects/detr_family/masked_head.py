"""Masks of queries in MMDetection: what the heads of RF-DETR-Seg and ECSeg add to a detector's."""

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from mmengine.structures import InstanceData
from torch import Tensor

from vit_plugin.errors import needed_by
from vit_plugin.importable import make_importable

from .query_masks import QueryMasks

with needed_by('RFDETRSegHead'):
    make_importable()
    from mmcv.ops import point_sample
    from mmdet.models.utils import get_uncertain_point_coords_with_randomness
    from mmdet.registry import MODELS as MMDET_MODELS
    from mmdet.registry import TASK_UTILS
    from mmdet.structures.bbox import bbox_cxcywh_to_xyxy

    from .grouped_detr_head import GroupedDETRHead

Base: Any = GroupedDETRHead if TYPE_CHECKING else object

MASK_LOSS = dict(type='mmdet.CrossEntropyLoss', use_sigmoid=True)
DICE = dict(type='mmdet.DiceLoss', naive_dice=True, eps=1.0)
WEIGHT = 5.0  # weight of each mask loss, in training and matching
COSTS = (
    dict(type='mmdet.CrossEntropyLossCost', use_sigmoid=True, weight=WEIGHT),
    dict(type='mmdet.DiceCost', pred_act=True, eps=1.0, weight=WEIGHT),
)
PIXELS_PER_POINT = 16  # mask pixels for each point of comparison
OVERSAMPLED, UNCERTAIN = 3.0, 0.75  # from PointRend (arXiv:1912.08193)
AT_ONCE = 32  # masks that are resized together


class MaskedHead(Base):
    """A :class:`~.grouped_detr_head.GroupedDETRHead` with a mask for each query, by inheritance.

    Costs and losses are those of Roboflow's code: cross-entropy and Dice, at random points for the
    matching and at uncertain points for the loss. The preprocessor of the detector has
    ``pad_mask=True``.

    A subclass calls :meth:`_build_masks`, gives the outputs of its layers :meth:`_masked`, and adds
    :meth:`_mask_losses` to the losses of a layer.

    Attributes:
        beyond: the logits beyond a mask's border at points of a loss, of ``grid_sample``.
    """

    outputs = ('boxes', 'scores', 'labels', 'masks')
    compared = ('bboxes', 'labels', 'ends', 'masks')
    beyond = 'border'

    def _build_masks(self, scale: float) -> None:
        """Build what masks have: parameters, costs and losses.

        Args:
            scale: sides of a mask over those of the finest map.
        """
        self.mask_costs = [TASK_UTILS.build(dict(cost)) for cost in COSTS]
        self.loss_mask, self.loss_dice = (
            MMDET_MODELS.build(dict(loss, loss_weight=WEIGHT)) for loss in (MASK_LOSS, DICE)
        )
        self.masks = QueryMasks(self.embed_dims, len(self.layers), scale)

    @property
    def _refined(self) -> int:
        """How many blocks refine the map of the masks that are predicted."""
        raise NotImplementedError

    def masks_of(self, x: Sequence[Tensor], features: Tensor) -> Tensor:
        """The logits of the masks (B, N, h, w) of features (B, N, C) of the last layer."""
        (level,) = islice(self.masks.maps(x[0]), self._refined, self._refined + 1)
        masks = self.masks(level, features)
        return masks.to(torch.promote_types(masks.dtype, torch.float32))

    def best(self, x: Sequence[Tensor], sizes: Any) -> tuple[Tensor, ...]:
        """The same with logits of masks (B, N, h, w) in place of features."""
        *best_boxes, features = super().best(x, sizes)
        return *best_boxes, self.masks_of(x, features)

    def predict(
        self, x: Sequence[Tensor], batch_data_samples: Sequence[Any], rescale: bool = True
    ) -> list[InstanceData]:
        """The boxes, scores, classes and masks (N, H, W) of each image, best first."""
        best = self.best(x, self.sizes_of(batch_data_samples, x[0]))
        return [
            predicted(sample.metainfo, rescale, *one)
            for sample, *one in zip(batch_data_samples, *best, strict=True)
        ]

    def _masked(self, layer: InstanceData, places: Tensor, rows: Tensor) -> None:
        """Give a layer both factors of its masks, and random points (B, P, 2) to compare them at.

        Args:
            layer: its outputs.
            places: the map (B, C, h, w).
            rows: the queries (B, Q, C).
        """
        layer.places, layer.rows = places.to(layer.logits), rows.to(layer.logits)
        number = places[0, 0].numel() // PIXELS_PER_POINT
        points = torch.rand(1, number, 2, device=places.device, dtype=layer.places.dtype)
        layer.points = points.expand(len(places), -1, -1)

    def _objects(self, sample: Any, ends: Tensor) -> InstanceData:
        """The same with the pixels (N, H, W) of masks in the padded batch."""
        objects = super()._objects(sample, ends)
        objects.masks = objects.masks.to_tensor(torch.bool, ends.device)
        return objects

    @torch.no_grad()
    def _cost(self, layer: InstanceData, objects: InstanceData, ends: Tensor) -> Tensor:
        """The same with the costs of masks at the points, where the layer has some."""
        boxes = super()._cost(layer, objects, ends)
        if 'places' not in layer:
            return boxes
        every = torch.arange(len(objects), device=ends.device)
        scores = self.masks.product(point_sample(layer.places, layer.points), layer.rows)
        queries = InstanceData(masks=scores[0])
        wanted = InstanceData(masks=inside(objects.masks, every, layer.points[0]))
        return sum((cost(queries, wanted) for cost in self.mask_costs), boxes)

    def _mask_losses(
        self,
        layer: InstanceData,
        objects: InstanceData,
        pairs: tuple[Tensor, Tensor],
        numbers: Sequence[int],
        count: Tensor,
    ) -> dict[str, Tensor]:
        """The losses of the masks of matched queries.

        Args:
            layer: its outputs.
            objects: those of the batch.
            pairs: queries and objects of the batch (M), image by image.
            numbers: of the pairs of each image.
            count: what the sums are divided by.
        """
        images = zip(layer.places, layer.rows, pairs[0].split([*numbers]), strict=True)
        every = [
            self.masks.product(places.flatten(1), rows[queries % len(rows)])
            for places, rows, queries in images
        ]
        masks = torch.cat(every).unflatten(1, layer.places.shape[-2:])[:, None]
        if not len(masks):
            return dict(mask=masks.sum(), dice=masks.sum())
        height, width = masks.shape[-2:]
        number = max(height, height * width // PIXELS_PER_POINT)
        with torch.no_grad():
            points = get_uncertain_point_coords_with_randomness(
                masks, None, number, OVERSAMPLED, UNCERTAIN
            ).to(masks)
        logits = point_sample(masks, points, padding_mode=self.beyond)[:, 0]
        wanted = inside(objects.masks, pairs[1], points).to(logits)
        return dict(
            mask=self.loss_mask(logits, wanted, avg_factor=count * number),
            dice=self.loss_dice(logits, wanted, avg_factor=count),
        )


def predicted(
    meta: dict, rescale: bool, boxes: Tensor, scores: Tensor, labels: Tensor, masks: Tensor
) -> InstanceData:
    """The prediction for an image, in pixels of its file if ``rescale``.

    Args:
        meta: of the image.
        rescale: see above.
        boxes: their centers and sizes (N, 4) as fractions.
        scores, labels: of the boxes (N).
        masks: logits (N, h, w), of the padded batch.
    """
    height, width = meta['img_shape'][:2]
    ends = boxes.new_tensor([width, height, width, height])
    boxes = torch.minimum((bbox_cxcywh_to_xyxy(boxes) * ends).clamp(min=0), ends)
    if rescale:
        boxes = boxes / boxes.new_tensor(meta['scale_factor']).repeat(2)
    size = tuple((meta['ori_shape'] if rescale else meta['img_shape'])[:2])
    outer, parts = tuple(meta['batch_input_shape']), []
    for part in masks[:, None].split(AT_ONCE):
        if outer != (height, width):
            part = F.interpolate(part, outer, mode='bilinear')[..., :height, :width]
        parts.append(F.interpolate(part, size, mode='bilinear')[:, 0] > 0)
    return InstanceData(bboxes=boxes, scores=scores, labels=labels, masks=torch.cat(parts))


def inside(pixels: Tensor, objects: Tensor, points: Tensor) -> Tensor:
    """Whether points (..., P, 2) from 0 to 1 are in the masks of these objects (M, P)."""
    size = points.new_tensor(pixels.shape[:0:-1])  # width and height
    columns, rows = (points * size).long().minimum(size.long() - 1).unbind(-1)
    return pixels[objects[:, None], rows, columns]
