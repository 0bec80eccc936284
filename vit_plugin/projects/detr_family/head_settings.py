"""Arguments that the heads of the family share."""

from typing_extensions import TypedDict

from vit_plugin.arguments.fields import NotNegative, PositiveInt, Typed

MATCHING = dict(
    assigner=dict(
        type='mmdet.HungarianAssigner',
        match_costs=[
            dict(type='mmdet.FocalLossCost', weight=2.0),
            dict(type='mmdet.BBoxL1Cost', weight=5.0, box_format='xywh'),
            dict(type='mmdet.IoUCost', iou_mode='giou', weight=2.0),
        ],
    )
)


class Loss(Typed, total=False):
    """A loss, with what else its class takes."""

    loss_weight: NotNegative


class Matching(TypedDict, total=False):
    """MMDetection's ``train_cfg`` of a DETR."""

    assigner: Typed


class MostBoxes(TypedDict, total=False):
    """Options of a prediction."""

    max_per_img: PositiveInt
