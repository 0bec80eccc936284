"""A mask for each query of a DETR: what RF-DETR-Seg and ECSeg add to the head of their detector."""

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from mmengine.structures import InstanceData
from torch import Tensor

from vit_plugin.errors import ConfigError, needed_by
from vit_plugin.importable import make_importable

from .query_masks import QueryMasks

with needed_by('A DETR with masks'):
    make_importable()
    from mmcv.ops import point_sample
    from mmdet.models.utils import get_uncertain_point_coords_with_randomness
    from mmdet.registry import MODELS as MMDET_MODELS
    from mmdet.registry import TASK_UTILS
    from mmdet.structures.bbox import bbox_cxcywh_to_xyxy

    from .grouped_detr_head import GroupedDETRHead

# At run time a plain mixin: each subclass has the head of its own detector as the second base.
Base: Any = GroupedDETRHead if TYPE_CHECKING else object

MASK_LOSS = dict(type='mmdet.CrossEntropyLoss', use_sigmoid=True)
DICE_LOSS = dict(type='mmdet.DiceLoss', naive_dice=True, eps=1.0)
MASK_WEIGHT = 5.0  # weight of each mask loss, in training and matching
MASK_COSTS = (
    dict(type='mmdet.CrossEntropyLossCost', use_sigmoid=True, weight=MASK_WEIGHT),
    dict(type='mmdet.DiceCost', pred_act=True, eps=1.0, weight=MASK_WEIGHT),
)
PIXELS_PER_POINT = 16  # masks are compared at one point for this many of their pixels
# Factor of oversampled points, and fraction of uncertain points (PointRend, arXiv:1912.08193).
OVERSAMPLING_FACTOR, UNCERTAIN_FRACTION = 3.0, 0.75
MASKS_RESIZED_AT_ONCE = 32  # limits the memory for masks of the image's size


class MaskedHead(Base):
    """Mixin that adds a mask for each query to a :class:`~.grouped_detr_head.GroupedDETRHead`.

    Costs and losses are those of Roboflow's code: cross-entropy and Dice, at random points for the
    matching and at uncertain points for the loss. The ``data_preprocessor`` of the detector needs
    ``pad_mask=True``.

    A subclass calls :meth:`_build_masks` once its layers are built, calls :meth:`_set_factors` for
    the outputs of each layer with masks, and adds :meth:`_mask_losses` to the losses of that layer.

    Attributes:
        padding_mode: the option of ``grid_sample`` with which a loss samples the logits of a mask.
        mask_costs: matching costs of masks.
        masks: the layers that predict masks.
    """

    outputs = ('boxes', 'scores', 'labels', 'masks')
    object_fields = ('bboxes', 'labels', 'ends', 'masks')
    padding_mode = 'border'

    def _build_masks(self, scale: float) -> None:
        """Build the parameters, costs and losses of masks.

        Args:
            scale: side of a mask relative to that of the finest map.
        """
        self.mask_costs = [TASK_UTILS.build(dict(cost)) for cost in MASK_COSTS]
        self.loss_mask, self.loss_dice = (
            MMDET_MODELS.build(dict(loss, loss_weight=MASK_WEIGHT))
            for loss in (MASK_LOSS, DICE_LOSS)
        )
        self.masks = QueryMasks(self.embed_dims, len(self.layers), scale)

    @property
    def _num_refining_blocks(self) -> int:
        """Number of blocks that refine the map before masks are predicted in evaluation."""
        raise NotImplementedError

    def masks_of(self, x: Sequence[Tensor], features: Tensor) -> Tensor:
        """Queries (B, N, C) after the last layer -> logits of their masks (B, N, h, w)."""
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
        """The boxes, scores, classes and masks (N, H, W) of each image, highest score first."""
        best = self.best(x, self.sizes_of(batch_data_samples, x[0]))
        return [
            make_prediction(sample.metainfo, rescale, *outputs)
            for sample, *outputs in zip(batch_data_samples, *best, strict=True)
        ]

    def _set_factors(self, layer: InstanceData, elements: Tensor, queries: Tensor) -> None:
        """Add what the losses of masks need to the outputs of a layer.

        A mask is the product of the two factors, ``mask_elements`` and ``mask_queries``. Only its
        values at random ``points`` (B, P, 2) are computed for the matching.

        Args:
            layer: the outputs of the layer.
            elements: the factor of the map (B, C, h, w).
            queries: the factor of the queries (B, Q, C).
        """
        layer.mask_elements = elements.to(layer.logits)
        layer.mask_queries = queries.to(layer.logits)
        num_points = elements[0, 0].numel() // PIXELS_PER_POINT
        points = torch.rand(1, num_points, 2, device=elements.device, dtype=layer.logits.dtype)
        layer.points = points.expand(len(elements), -1, -1)

    def _objects(self, sample: Any, ends: Tensor) -> InstanceData:
        """See the base class. Adds the masks (N, H, W), padded to the size of the batch.

        Raises:
            ConfigError: if they are not padded.
        """
        objects = super()._objects(sample, ends)
        size, padded = (objects.masks.height, objects.masks.width), sample.batch_input_shape[:2]
        if size != tuple(padded):
            raise ConfigError(
                f'{type(self).__name__}: masks of {size[0]} x {size[1]} pixels do not cover a '
                f'batch of {padded[0]} x {padded[1]}; set pad_mask=True in data_preprocessor.'
            )
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
            pairs: indices of matched queries and objects in the batch (M), image by image.
            numbers: number of pairs of each image.
            count: average number of pairs per GPU, which the losses are divided by.
        """
        matched = pairs[0].split([*numbers])
        images = zip(layer.mask_elements, layer.mask_queries, matched, strict=True)
        masks_of_images = [  # `% len(queries)`: an index in the batch -> in its image
            self.masks.product(elements.flatten(1), queries[indices % len(queries)])
            for elements, queries, indices in images
        ]
        masks = torch.cat(masks_of_images).unflatten(1, layer.mask_elements.shape[-2:])[:, None]
        if not len(masks):
            return dict(mask=masks.sum(), dice=masks.sum())
        height, width = masks.shape[-2:]
        # Roboflow's code has the same lower bound, the height.
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
        boxes: centers and sizes (N, 4) as fractions of the resized image, without its padding.
        scores, labels: scores and classes of the boxes (N).
        masks: logits (N, h, w), which cover the image and its padding.
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
    """Look points up in the masks of objects -> (M, P), with the dtype of the masks.

    Args:
        pixels: all masks (N, H, W).
        objects: indices of the objects (M).
        points: the points (M, P, 2), or (P, 2) for all objects: x and y as fractions of the width
            and height.
    """
    height, width = pixels.shape[1:]
    size = points.new_tensor([width, height])
    columns, rows = (points * size).long().minimum(size.long() - 1).unbind(-1)
    return pixels[objects[:, None], rows, columns]
