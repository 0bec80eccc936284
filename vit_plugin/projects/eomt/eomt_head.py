"""EoMT's head for instance and panoptic segmentation in MMDetection: its loss and its masks."""

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


# The terms of the loss and of the matching, as in Mask2Former: name -> (weight, loss, cost).
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
    """Weights of the three terms, in the loss and in the matching.

    Attributes:
        cls: weight of the classes. Default: 2.
        mask: weight of the cross-entropy of the masks. Default: 5.
        dice: weight of the Dice loss of the masks. Default: 5.
    """

    cls: NotNegative
    mask: NotNegative
    dice: NotNegative


class PointOptions(TypedDict, total=False):
    """How masks are compared at sampled points, as in Mask2Former.

    Attributes:
        num_points: number of points of a mask. Default: 12544.
        oversample_ratio: this many times more points are drawn, and the most uncertain of them are
            kept. Default: 3.
        importance_sample_ratio: fraction of the points that are chosen in this way. The others are
            random. Default: 0.75.
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

    It is the ``panoptic_head`` of a ``Mask2Former`` detector whose backbone is an
    :class:`~vit_plugin.models.EoMT` or a PMT. The head has no parameters. Loss, matching and
    post-processing are those of MMDetection's ``Mask2FormerHead``.

    Args:
        num_things_classes: number of classes of countable objects.
        num_stuff_classes: number of other classes; 0 for instance segmentation.
        loss_weights: see :class:`LossWeights`.
        no_object_weight: weight of queries without an object in the classification loss.
        train_cfg: see :class:`PointOptions`.
        test_cfg: accepted because the detector passes it; only the fusion head reads it.
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
        # Methods of Mask2FormerHead read these options and losses as attributes.
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
        """The predictions of the backbone, as Mask2FormerHead's methods take them.

        Args:
            x: class logits and mask logits of each prediction.
            batch_data_samples: unused.

        Returns:
            The class logits (B, Q, num_classes + 1) of all predictions, and their mask logits (B,
            Q, H, W), in at least float32.
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
