"""RF-DETR-Seg's head in MMDetection: a mask for each query (arXiv:2511.09554)."""

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
import torch.nn.functional as F
from mmengine.structures import InstanceData
from torch import Tensor

from vit_plugin.arguments.fields import Positive
from vit_plugin.errors import leave_out_multimodal, needed_by
from vit_plugin.registry import MODELS

from .query_masks import QueryMasks

with needed_by('RFDETRSegHead'):
    leave_out_multimodal()
    from mmcv.ops import point_sample
    from mmdet.models.utils import get_uncertain_point_coords_with_randomness
    from mmdet.registry import MODELS as MMDET_MODELS
    from mmdet.registry import TASK_UTILS
    from mmdet.structures.bbox import bbox_cxcywh_to_xyxy, bbox_overlaps, bbox_xyxy_to_cxcywh
    from mmdet.utils import reduce_mean

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
        **kwargs: see ``LWDETRHead``, with one map. An ``assigner`` gets the costs of the masks.
    """

    outputs = ('boxes', 'scores', 'labels', 'masks')

    def __init__(self, mask_scale: Positive, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.assigner.match_costs += [TASK_UTILS.build(dict(cost)) for cost in COSTS]
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

    def loss(self, x: Sequence[Tensor], batch_data_samples: Sequence[Any]) -> dict[str, Tensor]:
        """The losses of every layer, and with ``enc_`` those of the proposals."""
        sizes = self.sizes_of(batch_data_samples, x[0])
        logits, boxes, *proposals, hidden, features = self(x, sizes, self.num_groups)
        names = ['enc_', *(f'd{i}.' for i in range(len(logits) - 1)), '']
        outputs: list[Any] = [
            (*proposals, features),
            *zip(logits, boxes, hidden, strict=True),
        ]
        targets = [Targets.of(sample) for sample in batch_data_samples]
        return {
            f'{name}loss_{key}': value
            for name, level, found in zip(names, self.masks.maps(x[0]), outputs, strict=True)
            for key, value in self._losses(level, found, targets).items()
        }

    def _losses(
        self,
        level: Tensor,
        found: tuple[Tensor, Tensor, Tensor],
        targets: Sequence['Targets'],
    ) -> dict[str, Tensor]:
        """The losses of a layer: its enlarged map, and logits, boxes and features of all groups."""
        logits, boxes, features = found
        dtype = torch.promote_types(level.dtype, torch.float32)
        factors = self.masks.factors(level, features)
        logits, boxes, places, queries = (part.to(dtype) for part in (logits, boxes, *factors))
        size = places.shape[-2:]
        at = torch.rand(1, size.numel() // PLACES, 2, device=level.device, dtype=dtype)
        scores = self.masks.product(point_sample(places, at.expand(len(level), -1, -1)), queries)
        labels = logits.new_full(logits.shape[:2], self.num_classes, dtype=torch.long)
        overlaps = logits.new_zeros(logits.shape[:2])
        picked, wanted, masks, numbers = [], [], [], []
        for i, target in enumerate(targets):
            rows, objects = self._matched(logits[i], boxes[i], scores[i].to(dtype), target, at[0])
            labels[i, rows] = target.labels[objects]
            picked.append(boxes[i, rows])
            wanted.append(target.boxes[objects])
            masks.append(self.masks.product(places[i].flatten(1), queries[i, rows]).to(dtype))
            numbers.append(objects)
            overlaps[i, rows] = bbox_overlaps(
                *(bbox_cxcywh_to_xyxy(part[-1].detach()) for part in (picked, wanted)),
                is_aligned=True,
            )
        pixels = torch.cat(
            [
                target.ends.expand(len(part), -1)
                for target, part in zip(targets, picked, strict=True)
            ]
        )
        boxes, objects = torch.cat(picked), torch.cat(wanted)
        count = reduce_mean(boxes.new_tensor([float(len(boxes))])).clamp(min=1).item()
        return dict(
            cls=self.loss_cls(
                logits.flatten(0, 1), (labels.flatten(), overlaps.flatten()), avg_factor=count
            ),
            bbox=self.loss_bbox(boxes, objects, avg_factor=count),
            iou=self.loss_iou(
                bbox_cxcywh_to_xyxy(boxes) * pixels,
                bbox_cxcywh_to_xyxy(objects) * pixels,
                avg_factor=count,
            ),
            **self._mask_losses(torch.cat(masks).unflatten(1, size), targets, numbers, count),
        )

    def _matched(
        self, logits: Tensor, boxes: Tensor, scores: Tensor, target: 'Targets', at: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The queries of all groups that are matched in an image, and their objects.

        Args:
            logits: (groups * Q, num_classes).
            boxes: (groups * Q, 4).
            scores: logits of the masks (groups * Q, P) at points.
            target: the image.
            at: the points (P, 2).
        """
        every = torch.arange(len(target.labels), device=at.device)
        objects = InstanceData(
            labels=target.labels,
            bboxes=bbox_cxcywh_to_xyxy(target.boxes) * target.ends,
            masks=target.at(every, at),
        )
        pairs, number = [], len(logits) // self.num_groups
        for start in range(0, len(logits), number):
            group = slice(start, start + number)
            queries = InstanceData(
                scores=logits[group],
                bboxes=bbox_cxcywh_to_xyxy(boxes[group]) * target.ends,
                masks=scores[group],
            )
            given = self.assigner.assign(queries, objects, img_meta=target.meta).gt_inds
            rows = given.nonzero()[:, 0]
            pairs.append((rows + start, given[rows] - 1))
        rows, numbers = (torch.cat(parts) for parts in zip(*pairs, strict=True))
        return rows, numbers

    def _mask_losses(
        self, masks: Tensor, targets: Sequence['Targets'], numbers: Sequence[Tensor], count: float
    ) -> dict[str, Tensor]:
        """Losses of matched masks (M, h, w), for these objects of the images."""
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
        images = zip(targets, numbers, points.split([len(one) for one in numbers]), strict=True)
        wanted = torch.cat([target.at(objects, at) for target, objects, at in images]).to(found)
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


class Targets(NamedTuple):
    """The objects of an image.

    Attributes:
        labels: their classes (N).
        boxes: their centers and sizes (N, 4) as fractions of the image.
        masks: their pixels (N, H, W) in the padded batch.
        ends: width and height (4) of the image, twice.
        meta: of the image.
    """

    labels: Tensor
    boxes: Tensor
    masks: Tensor
    ends: Tensor
    meta: dict

    @classmethod
    def of(cls, sample: Any) -> 'Targets':
        """Those of a sample of MMDetection."""
        objects, meta = sample.gt_instances, sample.metainfo
        ends = objects.bboxes.new_tensor(meta['img_shape'][1::-1]).repeat(2)
        masks = objects.masks.to_tensor(torch.bool, ends.device)
        return cls(objects.labels, bbox_xyxy_to_cxcywh(objects.bboxes / ends), masks, ends, meta)

    def at(self, objects: Tensor, points: Tensor) -> Tensor:
        """Whether points (..., P, 2) from 0 to 1 are in the masks of these objects (M, P)."""
        size = points.new_tensor(self.masks.shape[:0:-1])  # width and height
        columns, rows = (points * size).long().minimum(size.long() - 1).unbind(-1)
        return self.masks[objects[:, None], rows, columns]
