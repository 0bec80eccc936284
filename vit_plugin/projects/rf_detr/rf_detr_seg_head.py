"""RF-DETR-Seg's head in MMDetection: a mask for each query (arXiv:2511.09554)."""

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from mmengine.structures import InstanceData
from torch import Tensor

from vit_plugin.arguments.fields import Positive
from vit_plugin.errors import needed_by
from vit_plugin.importable import make_importable
from vit_plugin.registry import MODELS

from .query_masks import QueryMasks

with needed_by('RFDETRSegHead'):
    make_importable()
    from mmcv.ops import point_sample
    from mmdet.models.utils import get_uncertain_point_coords_with_randomness
    from mmdet.registry import MODELS as MMDET_MODELS
    from mmdet.registry import TASK_UTILS
    from mmdet.structures.bbox import bbox_cxcywh_to_xyxy

Base: Any = object if TYPE_CHECKING else MODELS.get('vit_plugin.LWDETRHead')

MASKS = dict(type='mmdet.CrossEntropyLoss', use_sigmoid=True)
DICE = dict(type='mmdet.DiceLoss', naive_dice=True, eps=1.0)
WEIGHT = 5.0  # of each of the two, in the loss and in the matching
COSTS = (
    dict(type='mmdet.CrossEntropyLossCost', use_sigmoid=True, weight=WEIGHT),
    dict(type='mmdet.DiceCost', pred_act=True, eps=1.0, weight=WEIGHT),
)
PLACES = 16  # of a mask for one at which masks are compared
OVERSAMPLED, UNCERTAIN = 3.0, 0.75  # as in PointRend (arXiv:1912.08193)
AT_ONCE = 32  # masks that are resized together


@MODELS.register_module()
class RFDETRSegHead(Base):
    """An ``LWDETRHead`` with the masks of RF-DETR-Seg.

    Its costs and losses of masks are those of Roboflow's code: cross-entropy and Dice, at random
    points for the matching and at uncertain points for the loss. The preprocessor of the detector
    has ``pad_mask=True``.

    Args:
        mask_scale: sides of a mask over those of the map, which are a quarter of the image's in the
            published models.
        **kwargs: see ``LWDETRHead``, with one map.
    """

    outputs = ('boxes', 'scores', 'labels', 'masks')
    compared = ('bboxes', 'labels', 'ends', 'masks')

    def __init__(self, mask_scale: Positive, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.mask_costs = [TASK_UTILS.build(dict(cost)) for cost in COSTS]
        self.loss_mask, self.loss_dice = (
            MMDET_MODELS.build(dict(loss, loss_weight=WEIGHT)) for loss in (MASKS, DICE)
        )
        self.masks = QueryMasks(self.embed_dims, len(self.layers), mask_scale)

    def masks_of(self, x: Sequence[Tensor], features: Tensor) -> Tensor:
        """The logits of the masks (B, N, h, w) of features (B, N, C) of the last layer."""
        last = self.test_cfg['num_layers']
        (level,) = islice(self.masks.maps(x[0]), last, last + 1)
        masks = self.masks(level, features)
        return masks.to(torch.promote_types(masks.dtype, torch.float32))

    def best(self, x: Sequence[Tensor], sizes: Any) -> tuple[Tensor, ...]:
        """The same with logits of masks (B, N, h, w) in place of features."""
        *found, features = super().best(x, sizes)
        return *found, self.masks_of(x, features)

    def predict(
        self, x: Sequence[Tensor], batch_data_samples: Sequence[Any], rescale: bool = True
    ) -> list[InstanceData]:
        """The boxes, scores, classes and masks (N, H, W) of each image, best first."""
        found = self.best(x, self.sizes_of(batch_data_samples, x[0]))
        return [
            predicted(sample.metainfo, rescale, *one)
            for sample, *one in zip(batch_data_samples, *found, strict=True)
        ]

    def _layers(self, x: Sequence[Tensor], *outputs: Tensor) -> list[InstanceData]:
        """The same with both factors of the masks, and the masks (B, Q, P) at random points."""
        layers = super()._layers(x, *outputs)
        for level, layer in zip(self.masks.maps(x[0]), layers, strict=True):
            places, layer.rows = (
                part.to(layer.logits) for part in self.masks.factors(level, layer.features)
            )
            number = places[0, 0].numel() // PLACES
            points = torch.rand(1, number, 2, device=places.device, dtype=places.dtype)
            layer.places, layer.points = places, points.expand(len(places), -1, -1)
            with torch.no_grad():
                layer.scores = self.masks.product(point_sample(places, layer.points), layer.rows)
        return layers

    def _objects(self, sample: Any, ends: Tensor) -> InstanceData:
        """The same with the pixels (N, H, W) of masks in the padded batch."""
        objects = super()._objects(sample, ends)
        objects.masks = objects.masks.to_tensor(torch.bool, ends.device)
        return objects

    @torch.no_grad()
    def _cost(self, layer: InstanceData, objects: InstanceData, ends: Tensor) -> Tensor:
        """The same with the costs of masks at the points."""
        every = torch.arange(len(objects), device=ends.device)
        queries = InstanceData(masks=layer.scores[0])
        wanted = InstanceData(masks=inside(objects.masks, every, layer.points[0]))
        costs = [cost(queries, wanted) for cost in self.mask_costs]
        return sum(costs, super()._cost(layer, objects, ends))

    def _losses(
        self, layer: InstanceData, objects: InstanceData, pairs: Any, count: Tensor
    ) -> dict[str, Tensor]:
        """The same with those of the masks."""
        images = zip(layer.places, layer.rows, pairs.queries.split(pairs.numbers), strict=True)
        masks = [
            self.masks.product(places.flatten(1), rows[queries % len(rows)])
            for places, rows, queries in images
        ]
        size = layer.places.shape[-2:]
        return dict(
            super()._losses(layer, objects, pairs, count),
            **self._mask_losses(
                torch.cat(masks).unflatten(1, size), objects.masks, pairs.objects, count
            ),
        )

    def _mask_losses(
        self, masks: Tensor, pixels: Tensor, objects: Tensor, count: Tensor
    ) -> dict[str, Tensor]:
        """Losses of matched masks (M, h, w), for these objects of the batch (M)."""
        if not len(masks):
            return dict(mask=masks.sum(), dice=masks.sum())
        masks = masks[:, None]
        height, width = masks.shape[-2:]
        number = max(height, height * width // PLACES)
        with torch.no_grad():
            points = get_uncertain_point_coords_with_randomness(
                masks, None, number, OVERSAMPLED, UNCERTAIN
            ).to(masks)
        found = point_sample(masks, points, padding_mode='border')[:, 0]
        wanted = inside(pixels, objects, points).to(found)
        return dict(
            mask=self.loss_mask(found, wanted, avg_factor=count * number),
            dice=self.loss_dice(found, wanted, avg_factor=count),
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
