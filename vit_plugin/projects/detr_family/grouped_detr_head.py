"""A base class for DETR heads whose queries are trained in groups: matching, losses, predictions.

Several groups of queries give each object several matches, so the detector learns faster. Only the
first group predicts.
"""

from collections.abc import Sequence
from typing import Any

import torch
from mmengine.structures import InstanceData
from torch import Tensor

from vit_plugin.errors import ConfigError, needed_by
from vit_plugin.importable import make_importable

from .decoder_memory import ImageSizes
from .matching import Pairs, match

with needed_by('GroupedDETRHead'):
    make_importable()
    from mmdet.models.dense_heads import DETRHead
    from mmdet.models.losses import QualityFocalLoss
    from mmdet.models.task_modules import HungarianAssigner
    from mmdet.structures.bbox import bbox_cxcywh_to_xyxy, bbox_overlaps, bbox_xyxy_to_cxcywh
    from mmdet.utils import reduce_mean


class GroupedDETRHead(DETRHead):
    """A ``DETRHead`` of MMDetection with groups of queries (Group DETR, arXiv:2207.13085).

    Every group is matched on its own. MMDetection's matching would take each group of an image as
    another image, and wait for the GPU for each. Here a step waits once. The costs and losses are
    MMDetection's.

    A subclass defines ``forward`` with the arguments and outputs of
    :class:`~vit_plugin.projects.lw_detr.lw_detr_head.LWDETRHead`'s.

    Args:
        num_groups: number of groups in training.
        *args, **kwargs: arguments of ``DETRHead``.

    Raises:
        ConfigError: if the assigner is not a ``HungarianAssigner``.
    """

    outputs = ('boxes', 'scores', 'labels')  # outputs of an exported graph, see `select_best`
    class_layers = ('fc_cls', 'proposal_cls')  # layers with a row for each class
    # Fields of the objects that losses need; for `ends` see `_objects`.
    object_fields: tuple[str, ...] = ('bboxes', 'labels', 'ends')

    def __init__(self, num_groups: int, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.num_groups = num_groups
        if type(self.assigner) is not HungarianAssigner:
            raise ConfigError(
                f'{type(self).__name__}: train_cfg.assigner must be a HungarianAssigner, with any '
                f'match_costs, not a {type(self.assigner).__name__}.'
            )

    @staticmethod
    def sizes_of(samples: Sequence[Any], like: Tensor) -> ImageSizes:
        """Heights and widths of images (B, 2), and those of the batch that they are padded to."""
        inner = torch.tensor([sample.img_shape[:2] for sample in samples], device=like.device)
        return inner, tuple(samples[0].batch_input_shape[:2])

    def _init_layers(self) -> None:
        """Build nothing: MMDetection calls this before the sizes are known."""

    def loss(self, x: Sequence[Tensor], batch_data_samples: Sequence[Any]) -> dict[str, Tensor]:
        """The losses of the proposals (``enc_``), each layer (``d0.``, ...) and the last one."""
        sizes = self.sizes_of(batch_data_samples, x[0])
        layers = self._layer_outputs(x, *self(x, sizes, self.num_groups))
        ends = sizes[0].flip(1).repeat(1, 2)  # widths and heights (B, 4), twice
        per_image = [self._objects(*pair) for pair in zip(batch_data_samples, ends, strict=True)]
        costs = [
            [self._cost(layer[i], objects, ends[i]) for i, objects in enumerate(per_image)]
            for layer in layers
        ]
        pairs = match(costs, self.num_groups)
        # Only these fields: others may differ between images, and then cannot be concatenated.
        all_objects = InstanceData(
            **{name: torch.cat([part[name] for part in per_image]) for name in self.object_fields}
        )
        count = reduce_mean(costs[0][0].new_tensor(float(sum(pairs[0].numbers)))).clamp(min=1)
        names = ['enc_', *(f'd{i}.' for i in range(len(layers) - 2)), '']
        return {
            f'{name}loss_{key}': value
            for name, layer, matched in zip(names, layers, pairs, strict=True)
            for key, value in self._losses(layer, all_objects, matched, count).items()
        }

    def _layer_outputs(self, x: Sequence[Tensor], *outputs: Tensor) -> list[InstanceData]:
        """The outputs of the proposals and then of each layer, in at least float32.

        Args:
            x: the maps, which a subclass may need for masks.
            *outputs: the outputs of ``forward``.

        Returns:
            ``logits`` (B, Q, num_classes), ``boxes`` (B, Q, 4) and ``features`` (B, Q, C) of each.
        """
        logits, boxes, *proposals, decoded, proposal_features = outputs
        dtype = torch.promote_types(logits.dtype, torch.float32)
        layers: list[Any] = [
            (*proposals, proposal_features),
            *zip(logits, boxes, decoded, strict=True),
        ]
        return [
            InstanceData(logits=logits.to(dtype), boxes=boxes.to(dtype), features=features)
            for logits, boxes, features in layers
        ]

    def _objects(self, sample: Any, ends: Tensor) -> InstanceData:
        """The objects in an image, with ``ends``: its width, height, width and height in pixels.

        A box as fractions of the image, times ``ends``, is in pixels.
        """
        objects = sample.gt_instances.new(metainfo=sample.metainfo)
        objects.ends = ends.expand(len(objects), 4)
        return objects

    @torch.no_grad()
    def _cost(self, layer: InstanceData, objects: InstanceData, ends: Tensor) -> Tensor:
        """The cost of each query of an image for each of its objects (groups * Q, N).

        Args:
            layer: the outputs of a layer for this image, as a batch of one.
            objects: the objects.
            ends: see :meth:`_objects`.
        """
        boxes = bbox_cxcywh_to_xyxy(layer.boxes[0]) * ends
        queries = InstanceData(scores=layer.logits[0], bboxes=boxes)
        return sum(cost(queries, objects, objects.metainfo) for cost in self.assigner.match_costs)

    def _losses(
        self, layer: InstanceData, objects: InstanceData, pairs: Pairs, count: Tensor
    ) -> dict[str, Tensor]:
        """The losses of a layer.

        Args:
            layer: its outputs, see :meth:`_layer_outputs`.
            objects: the objects of the batch.
            pairs: matched queries and objects.
            count: average number of pairs per GPU, which the losses are divided by.
        """
        queries, matched, _ = pairs
        logits, boxes = layer.logits.flatten(0, 1), layer.boxes.flatten(0, 1)[queries]
        bboxes, ends = objects.bboxes[matched], objects.ends[matched]
        corners = bbox_cxcywh_to_xyxy(boxes) * ends
        labels = torch.full_like(logits[:, 0], self.num_classes, dtype=torch.long)
        ious = torch.zeros_like(logits[:, 0])
        labels[queries] = objects.labels[matched]
        ious[queries] = bbox_overlaps(corners.detach(), bboxes, is_aligned=True)
        # MMDetection counts unmatched queries by the weight of the background class.
        background = self.bg_cls_weight * (len(logits) - count)
        targets = (labels, ious) if isinstance(self.loss_cls, QualityFocalLoss) else labels
        return dict(
            cls=self.loss_cls(logits, targets, avg_factor=count + background),
            bbox=self.loss_bbox(boxes, bbox_xyxy_to_cxcywh(bboxes / ends), avg_factor=count),
            iou=self.loss_iou(corners, bboxes, avg_factor=count),
        )

    def predict(
        self, x: Sequence[Tensor], batch_data_samples: Sequence[Any], rescale: bool = True
    ) -> list[Any]:
        """The boxes, scores and classes of each image, highest score first."""
        logits, boxes, *_ = self(x, self.sizes_of(batch_data_samples, x[0]))
        metas = [sample.metainfo for sample in batch_data_samples]
        return self.predict_by_feat(logits, boxes, metas, rescale=rescale)

    def select_best(self, logits: Tensor, boxes: Tensor, features: Tensor) -> tuple[Tensor, ...]:
        """Select the predictions with the highest scores, for an exported graph.

        A query can be in several of them, with different classes.

        Args:
            logits: the logits (B, Q, num_classes) of a layer.
            boxes: the boxes (B, Q, 4).
            features: the queries after the layer (B, Q, C).

        Returns:
            Boxes (B, N, 4), scores (B, N), classes (B, N), and features (B, N, C), highest score
            first. N is ``max_per_img``.
        """
        dtype = torch.promote_types(logits.dtype, torch.float32)
        scores, best = logits.to(dtype).sigmoid().flatten(1).topk(self.test_cfg['max_per_img'])
        queries = (best // self.num_classes)[..., None]
        boxes, features = (
            part.gather(1, queries.expand(-1, -1, part.shape[-1]))
            for part in (boxes.to(dtype), features)
        )
        return boxes, scores, best % self.num_classes, features
