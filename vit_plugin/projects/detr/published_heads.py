"""MMDetection's heads of three DETRs, extended for published weights and export.

Published classification layers may have rows that are not a class, as COCO's 91 rows for 80
classes, and all layers of a decoder may share one.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from vit_plugin.arguments.fields import InitConfig, PositiveInt, Section
from vit_plugin.errors import needed_by
from vit_plugin.importable import make_importable
from vit_plugin.projects.detr_family.head_settings import Matching, MaxBoxes
from vit_plugin.registry import MODELS

with needed_by('PublishedDETRHead'):
    make_importable()
    from mmdet.models.dense_heads import ConditionalDETRHead, DeformableDETRHead, DETRHead

    from vit_plugin.projects.detr_family.class_rows import class_rows

NO_OBJECT_WEIGHT = 0.1  # weight of "no object" in DETR's class loss
FOCAL_LOSS = dict(type='mmdet.FocalLoss', use_sigmoid=True, gamma=2.0, alpha=0.25, loss_weight=2.0)


class PublishedHead(DETRHead):
    """The base class of the heads, in front of a second base class from MMDetection.

    Losses, costs and post-processing are the papers' and MMDetection's.

    Args:
        num_classes: number of classes.
        num_queries: queries of the detector.
        embed_dims: channels of the queries.
        unused_rows: rows of the classification layers that are not a class. They are never
            predicted; in a softmax, they count as "no object".
        shared_classes: whether all layers share one classification layer, if each refines boxes.
        train_cfg: MMDetection's, with an ``assigner``. Default: the paper's costs.
        test_cfg: ``max_per_img``, the maximum number of boxes per image.
        init_cfg: MMEngine's initialization config.
        **layers: the number of layers, as set by MMDetection's detector.

    Raises:
        ConfigError: if ``unused_rows`` are not different rows of the layers.
    """

    outputs = ('boxes', 'scores', 'labels')  # outputs of the graph, see `best`
    class_layers: tuple[str, ...] = ('fc_cls',)  # layers with a row for each class
    # The cost of the classes in matching.
    cost: Section = dict(type='mmdet.FocalLossCost', weight=2.0)

    def __init__(
        self,
        num_classes: PositiveInt,
        num_queries: PositiveInt = 300,
        embed_dims: PositiveInt = 256,
        unused_rows: Sequence[int] = (),
        shared_classes: bool = False,
        train_cfg: Matching | None = None,
        test_cfg: MaxBoxes | None = None,
        init_cfg: InitConfig = None,
        **layers: Any,
    ) -> None:
        self.unused_rows, self.shared_classes = list(unused_rows), shared_classes
        rows = class_rows(type(self).__name__, num_classes, self.unused_rows)
        costs = [
            self.cost,
            dict(type='mmdet.BBoxL1Cost', weight=5.0, box_format='xywh'),
            dict(type='mmdet.IoUCost', iou_mode='giou', weight=2.0),
        ]
        loss = self.class_loss(num_classes)
        max_boxes = num_queries * (num_classes if loss.get('use_sigmoid') else 1)
        super().__init__(
            num_classes,
            embed_dims,
            sync_cls_avg_factor=True,
            loss_cls=loss,
            loss_bbox=dict(type='mmdet.L1Loss', loss_weight=5.0),
            loss_iou=dict(type='mmdet.GIoULoss', loss_weight=2.0),
            test_cfg=dict(
                max_per_img=min(max_boxes, (test_cfg or {}).get('max_per_img', max_boxes))
            ),
            train_cfg=train_cfg
            or dict(assigner=dict(type='mmdet.HungarianAssigner', match_costs=costs)),
            init_cfg=init_cfg,
            **layers,
        )
        # The weight of "no object", which MMDetection reads from the loss only for `DETRHead`.
        self.bg_cls_weight = loss.get('class_weight', [0.0])[-1]
        self.register_buffer('class_rows', rows, persistent=False)

    def class_loss(self, num_classes: int) -> Section:
        """The loss of the classes."""
        return dict(FOCAL_LOSS)

    def _init_layers(self) -> None:
        """Build the layers, with the unused rows in the classification layers."""
        self.cls_out_channels += len(self.unused_rows)
        super()._init_layers()
        self.cls_out_channels -= len(self.unused_rows)

    def forward(self, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """See MMDetection's head. Unused rows are left out, or added to "no object"."""
        logits, boxes = super().forward(*args, **kwargs)
        if not self.unused_rows:
            return logits, boxes
        class_logits = logits.index_select(-1, self.class_rows)
        if not self.loss_cls.use_sigmoid:
            no_object = logits[..., [*self.unused_rows, -1]].logsumexp(-1, keepdim=True)
            class_logits = torch.cat((class_logits, no_object), dim=-1)
        return class_logits, boxes

    def best(self, outputs: Mapping[str, Any], sizes: Any) -> tuple[Tensor, ...]:
        """The detector's outputs -> the predictions, best first, for an exported graph.

        ``sizes`` is not used here; the heads of other projects read it.

        Returns:
            Boxes (B, N, 4) as fractions, scores (B, N) and classes (B, N).
        """
        logits, boxes = (part[-1].float() for part in self(**outputs))
        if self.loss_cls.use_sigmoid:
            scores, best = logits.sigmoid().flatten(1).topk(self.test_cfg['max_per_img'])
            queries, labels = best // self.num_classes, best % self.num_classes
        else:
            scores, labels = logits.softmax(-1)[..., :-1].max(-1)
            scores, queries = scores.topk(self.test_cfg['max_per_img'])
            labels = labels.gather(1, queries)
        return boxes.gather(1, queries[..., None].expand(-1, -1, 4)), scores, labels


@MODELS.register_module()
class PublishedDETRHead(PublishedHead):
    """The head of DETR (arXiv:2005.12872), with a softmax over the classes and no object.

    Args: see :class:`PublishedHead`.
    """

    cost = dict(type='mmdet.ClassificationCost', weight=1.0)

    def class_loss(self, num_classes: int) -> Section:
        """Cross-entropy, with a smaller weight for "no object"."""
        return dict(
            type='mmdet.CrossEntropyLoss', class_weight=[1.0] * num_classes + [NO_OBJECT_WEIGHT]
        )


@MODELS.register_module()
class PublishedConditionalDETRHead(PublishedHead, ConditionalDETRHead):
    """The head of Conditional DETR (arXiv:2108.06152).

    Args: see :class:`PublishedHead`.
    """


@MODELS.register_module()
class PublishedDeformableDETRHead(PublishedHead, DeformableDETRHead):
    """The head of Deformable DETR (arXiv:2010.04159), also with refined boxes and in two stages.

    Args: see :class:`PublishedHead`.
    """

    class_layers = ('cls_branches',)
    cls_branches: nn.ModuleList

    def _init_layers(self) -> None:
        super()._init_layers()
        if self.shared_classes:
            self.cls_branches = nn.ModuleList([self.cls_branches[0]] * len(self.cls_branches))
        self.register_load_state_dict_pre_hook(_fill_shared)

    def loss_by_feat(
        self, logits: Tensor, boxes: Tensor, proposed: Tensor | None, *rest: Any
    ) -> dict[str, Tensor]:
        """See MMDetection's head. The first logit of a proposal is its objectness."""
        if proposed is not None:
            proposed = proposed[..., : self.cls_out_channels]
        return super().loss_by_feat(logits, boxes, proposed, *rest)


def _fill_shared(head: nn.Module, state: dict[str, Tensor], prefix: str, *_: Any) -> None:
    """Copy shared parameters, which files may store only once, to every layer.

    Called by torch before ``head`` loads ``state``.
    """
    first: dict[int, str] = {}
    for name, parameter in head.named_parameters(prefix.rstrip('.'), remove_duplicate=False):
        shared = first.setdefault(id(parameter), name)
        if shared in state:
            state.setdefault(name, state[shared])
