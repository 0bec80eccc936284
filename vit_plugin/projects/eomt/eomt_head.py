"""EoMT's loss and masks in MMDetection: instance and panoptic segmentation."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from typing_extensions import TypedDict

from vit_plugin.arguments.fields import (
    Count,
    Fraction,
    InitConfig,
    NotNegative,
    Positive,
    PositiveInt,
    Section,
)
from vit_plugin.errors import ConfigError, needed_by
from vit_plugin.importable import make_importable
from vit_plugin.registry import MODELS

from .mask_queries import Prediction

with needed_by('EoMTHead'):
    make_importable()
    from mmdet.models.dense_heads import AnchorFreeHead, Mask2FormerHead
    from mmdet.models.task_modules import HungarianAssigner, MaskPseudoSampler
    from mmdet.registry import MODELS as MMDET_MODELS


# The terms of the loss and of the matching, as in Mask2Former: weight, loss and cost.
TERMS: Section = dict(
    cls=(2.0, dict(type='mmdet.CrossEntropyLoss'), dict(type='mmdet.ClassificationCost')),
    mask=(
        5.0,
        dict(type='mmdet.CrossEntropyLoss', use_sigmoid=True),
        dict(type='mmdet.CrossEntropyLossCost', use_sigmoid=True),
    ),
    dice=(
        5.0,
        dict(type='mmdet.DiceLoss', naive_dice=True, eps=1.0),
        dict(type='mmdet.DiceCost', pred_act=True, eps=1.0),
    ),
)
POINT_SAMPLING = dict(num_points=12544, oversample_ratio=3.0, importance_sample_ratio=0.75)


class LossWeights(TypedDict, total=False):
    """Weights of the three terms, in the loss and in the matching. Default: 2, 5 and 5."""

    cls: NotNegative
    mask: NotNegative
    dice: NotNegative


class PointOptions(TypedDict, total=False):
    """The points at which masks are compared, as in Mask2Former.

    Attributes:
        num_points: number of points of a mask. Default: 12544.
        oversample_ratio: factor by which more points are drawn, of which the most uncertain are
            kept. Default: 3.
        importance_sample_ratio: fraction of the points chosen in this way. Default: 0.75.
    """

    num_points: PositiveInt
    oversample_ratio: Positive
    importance_sample_ratio: Fraction


class FusionOptions(TypedDict, total=False):
    """Options of MMDetection's ``MaskFormerFusionHead``."""

    panoptic_on: bool
    semantic_on: bool
    instance_on: bool
    filter_low_score: bool
    max_per_image: PositiveInt
    iou_thr: Fraction
    object_mask_thr: Fraction


@MODELS.register_module()
class EoMTHead(Mask2FormerHead):
    """Mask2Former's loss on every prediction of an EoMT (arXiv:2503.19108, Section 3.1).

    The backbone is an :class:`~vit_plugin.models.EoMT`. The head has no parameters. Loss, matching
    and masks are those of MMDetection's ``Mask2FormerHead``. It is the ``panoptic_head`` of a
    ``Mask2Former`` detector.

    Args:
        num_things_classes: number of classes of countable objects.
        num_stuff_classes: number of other classes; 0 for instance segmentation.
        loss_weights: see :class:`LossWeights`.
        no_object_weight: weight of queries without an object in the loss of the classes.
        train_cfg: see :class:`PointOptions`.
        test_cfg: MMDetection's, which the fusion head reads.
        init_cfg: MMEngine's initialization config.

    Raises:
        ConfigError: in the forward, if the backbone has another number of classes.
    """

    def __init__(
        self,
        num_things_classes: PositiveInt,
        num_stuff_classes: Count = 0,
        loss_weights: LossWeights | None = None,
        no_object_weight: Fraction = 0.1,
        train_cfg: PointOptions | None = None,
        test_cfg: FusionOptions | None = None,
        init_cfg: InitConfig = None,
    ) -> None:
        # Skips Mask2FormerHead's constructor, which builds its decoders.
        super(AnchorFreeHead, self).__init__(init_cfg=init_cfg)
        self.num_things_classes, self.num_stuff_classes = num_things_classes, num_stuff_classes
        self.num_classes = num_things_classes + num_stuff_classes
        self.test_cfg, self.train_cfg = test_cfg, train_cfg
        for name, value in {**POINT_SAMPLING, **(train_cfg or {})}.items():
            setattr(self, name, value)
        costs = []
        for name, (default_weight, loss, cost) in TERMS.items():
            weight = {**(loss_weights or {})}.get(name, default_weight)
            costs.append(dict(cost, weight=weight))
            setattr(self, f'loss_{name}', MMDET_MODELS.build(dict(loss, loss_weight=weight)))
        self.class_weight = [1.0] * self.num_classes + [no_object_weight]
        self.loss_cls.class_weight = self.class_weight
        self.assigner, self.sampler = HungarianAssigner(costs), MaskPseudoSampler()

    def init_weights(self) -> None:
        """Do nothing: there are no parameters."""

    def forward(
        self, x: Sequence[Prediction], batch_data_samples: Any = None
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Predictions -> classes (B, Q, num_classes + 1), masks (B, Q, H, W), float32.

        The input is the backbone's output, a pair of classes and masks for each prediction.
        """
        classes, masks = (
            [part.to(torch.promote_types(part.dtype, torch.float32)) for part in parts]
            for parts in zip(*x, strict=True)
        )
        if classes[-1].shape[-1] != self.num_classes + 1:
            raise ConfigError(
                f'{type(self).__name__}: it has {self.num_classes} classes, but the backbone has '
                f'num_classes={classes[-1].shape[-1] - 1}; make them equal.'
            )
        self.num_queries = classes[-1].shape[1]  # for Mask2FormerHead's targets
        return classes, masks
