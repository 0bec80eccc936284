"""Arguments that the heads of the family share."""

from typing import Any

from typing_extensions import TypedDict

from vit_plugin.arguments.fields import NotNegative, PositiveInt, Typed


class Loss(Typed, total=False):
    """A loss: its type, its weight, and any other argument of its class."""

    loss_weight: NotNegative


class Matching(TypedDict, total=False):
    """MMDetection's ``train_cfg`` of a DETR."""

    assigner: Typed


class MaxBoxes(TypedDict, total=False):
    """MMDetection's ``test_cfg`` of a DETR."""

    max_per_img: PositiveInt


def make_matching(bbox: float = 5.0, iou: float = 2.0) -> Matching:
    """LW-DETR's ``train_cfg``, with these weights of the L1 cost and the GIoU cost of boxes."""
    costs = [
        dict(type='mmdet.FocalLossCost', weight=2.0),
        dict(type='mmdet.BBoxL1Cost', weight=bbox, box_format='xywh'),
        dict(type='mmdet.IoUCost', iou_mode='giou', weight=iou),
    ]
    assigner: Any = dict(type='mmdet.HungarianAssigner', match_costs=costs)
    return dict(assigner=assigner)


MATCHING = make_matching()  # the weights of LW-DETR, RT-DETR and D-FINE
