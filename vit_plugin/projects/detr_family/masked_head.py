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

# At run time a plain mixin, since each subclass names its own head as a further base.
Base: Any = GroupedDETRHead if TYPE_CHECKING else object

MASK_LOSS = dict(type='mmdet.CrossEntropyLoss', use_sigmoid=True)
DICE_LOSS = dict(type='mmdet.DiceLoss', naive_dice=True, eps=1.0)
MASK_WEIGHT = 5.0  # weight of each mask loss, in training and matching
MASK_COSTS = (
    dict(type='mmdet.CrossEntropyLossCost', use_sigmoid=True, weight=MASK_WEIGHT),
    dict(type='mmdet.DiceCost', pred_act=True, eps=1.0, weight=MASK_WEIGHT),
)
PIXELS_PER_POINT = 16  # mask pixels for each point of comparison
# Factor of oversampled points, and fraction of uncertain points (PointRend, arXiv:1912.08193).
OVERSAMPLING_FACTOR, UNCERTAIN_FRACTION = 3.0, 0.75
MASKS_RESIZED_AT_ONCE = 32


class MaskedHead(Base):
    """Mixin that adds a mask for each query to a :class:`~.grouped_detr_head.GroupedDETRHead`.

    Costs and losses are those of Roboflow's code: cross-entropy and Dice, at random points for the
    matching and at uncertain points for the loss. The preprocessor of the detector has
    ``pad_mask=True``.

    A subclass calls :meth:`_build_masks` once its layers are built, calls :meth:`_set_factors` for
    the outputs of each layer with masks, and adds :meth:`_mask_losses` to the losses of that layer.

    Attributes:
        padding_mode: the option of ``grid_sample`` where a loss samples the logits of a mask.
    """

    outputs = ('boxes', 'scores', 'labels', 'masks')
    compared = ('bboxes', 'labels', 'ends', 'masks')
    padding_mode = 'border'

    def _build_masks(self, scale: float) -> None:
        """Build the parameters, costs and losses of masks.

        Args:
            scale: sides of a mask over those of the finest map.
        """
        self.mask_costs = [TASK_UTILS.build(dict(cost)) for cost in MASK_COSTS]
        self.loss_mask, self.loss_dice = (
            MMDET_MODELS.build(dict(loss, loss_weight=MASK_WEIGHT))
            for loss in (MASK_LOSS, DICE_LOSS)
        )
        self.masks = QueryMasks(self.embed_dims, len(self.layers), scale)

    @property
    def _num_refining_blocks(self) -> int:
        """How many blocks refine the map for the masks of a prediction."""
        raise NotImplementedError

    def masks_of(self, x: Sequence[Tensor], features: Tensor) -> Tensor:
        """The logits of the masks (B, N, h, w) of features (B, N, C) of the last layer."""
        level = next(islice(self.masks.maps(x[0]), self._num_refining_blocks, None))
        masks = self.masks(level, features)
        return masks.to(torch.promote_types(masks.dtype, torch.float32))

    def best(self, x: Sequence[Tensor], sizes: Any) -> tuple[Tensor, ...]:
        """See the base class. Logits of masks (B, N, h, w) replace the features."""
        *best_boxes, features = super().best(x, sizes)
        return *best_boxes, self.masks_of(x, features)

    def predict(
        self, x: Sequence[Tensor], batch_data_samples: Sequence[Any], rescale: bool = True
    ) -> list[InstanceData]:
        """The boxes, scores, classes and masks (N, H, W) of each image, best first."""
        best = self.best(x, self.sizes_of(batch_data_samples, x[0]))
        return [
            make_prediction(sample.metainfo, rescale, *outputs)
            for sample, *outputs in zip(batch_data_samples, *best, strict=True)
        ]

    def _set_factors(self, layer: InstanceData, elements: Tensor, queries: Tensor) -> None:
        """Set both factors of a layer's masks, and random points (B, P, 2) to compare these at.

        Args:
            layer: the outputs of the layer.
            elements: the map (B, C, h, w).
            queries: the queries (B, Q, C).
        """
        layer.mask_elements = elements.to(layer.logits)
        layer.mask_queries = queries.to(layer.logits)
        num_points = elements[0, 0].numel() // PIXELS_PER_POINT
        points = torch.rand(1, num_points, 2, device=elements.device, dtype=layer.logits.dtype)
        layer.points = points.expand(len(elements), -1, -1)

    def _objects(self, sample: Any, ends: Tensor) -> InstanceData:
        """See the base class. Adds the pixels (N, H, W) of masks in the padded batch."""
        objects = super()._objects(sample, ends)
        objects.masks = objects.masks.to_tensor(torch.bool, ends.device)
        return objects

    @torch.no_grad()
    def _cost(self, layer: InstanceData, objects: InstanceData, ends: Tensor) -> Tensor:
        """See the base class. Adds the costs of masks at the points, if the layer has masks."""
        boxes = super()._cost(layer, objects, ends)
        if 'mask_elements' not in layer:
            return boxes
        all_objects = torch.arange(len(objects), device=ends.device)
        elements = point_sample(layer.mask_elements, layer.points)
        scores = self.masks.product(elements, layer.mask_queries)
        queries = InstanceData(masks=scores[0])
        targets = InstanceData(masks=sample_masks(objects.masks, all_objects, layer.points[0]))
        return sum((cost(queries, targets) for cost in self.mask_costs), boxes)

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
            layer: the outputs of a layer.
            objects: the objects of the batch.
            pairs: queries and objects, numbered over the batch (M), image by image.
            numbers: number of pairs of each image.
            count: the divisor of the sums.
        """
        matched = pairs[0].split([*numbers])
        images = zip(layer.mask_elements, layer.mask_queries, matched, strict=True)
        masks_of_images = [  # indices of queries count over the batch
            self.masks.product(elements.flatten(1), queries[indices % len(queries)])
            for elements, queries, indices in images
        ]
        masks = torch.cat(masks_of_images).unflatten(1, layer.mask_elements.shape[-2:])[:, None]
        if not len(masks):
            return dict(mask=masks.sum(), dice=masks.sum())
        height, width = masks.shape[-2:]
        # Roboflow's code has the same lower bound.
        num_points = max(height, height * width // PIXELS_PER_POINT)
        with torch.no_grad():
            points = get_uncertain_point_coords_with_randomness(
                masks, None, num_points, OVERSAMPLING_FACTOR, UNCERTAIN_FRACTION
            ).to(masks)
        logits = point_sample(masks, points, padding_mode=self.padding_mode)[:, 0]
        targets = sample_masks(objects.masks, pairs[1], points).to(logits)
        return dict(
            mask=self.loss_mask(logits, targets, avg_factor=count * num_points),
            dice=self.loss_dice(logits, targets, avg_factor=count),
        )


def make_prediction(
    meta: dict, rescale: bool, boxes: Tensor, scores: Tensor, labels: Tensor, masks: Tensor
) -> InstanceData:
    """The prediction for an image, in pixels.

    Args:
        meta: metainfo of the image.
        rescale: whether to scale boxes and masks to the size of the image file.
        boxes: centers and sizes (N, 4) as fractions of the resized image.
        scores, labels: scores and classes of the boxes (N).
        masks: logits (N, h, w), which cover the padded batch.
    """
    height, width = meta['img_shape'][:2]
    ends = boxes.new_tensor([width, height, width, height])
    boxes = torch.minimum((bbox_cxcywh_to_xyxy(boxes) * ends).clamp(min=0), ends)
    if rescale:
        boxes = boxes / boxes.new_tensor(meta['scale_factor']).repeat(2)
    size = tuple((meta['ori_shape'] if rescale else meta['img_shape'])[:2])
    padded_size, resized = tuple(meta['batch_input_shape']), []
    for chunk in masks[:, None].split(MASKS_RESIZED_AT_ONCE):
        if padded_size != (height, width):
            chunk = F.interpolate(chunk, padded_size, mode='bilinear')[..., :height, :width]
        resized.append(F.interpolate(chunk, size, mode='bilinear')[:, 0] > 0)
    return InstanceData(bboxes=boxes, scores=scores, labels=labels, masks=torch.cat(resized))


def sample_masks(pixels: Tensor, objects: Tensor, points: Tensor) -> Tensor:
    """Whether points are in the masks of objects (M, P).

    Args:
        pixels: all masks (N, H, W).
        objects: numbers of the objects (M).
        points: the points (..., P, 2), as fractions of width and height.
    """
    height, width = pixels.shape[1:]
    size = points.new_tensor([width, height])
    columns, rows = (points * size).long().minimum(size.long() - 1).unbind(-1)
    return pixels[objects[:, None], rows, columns]
