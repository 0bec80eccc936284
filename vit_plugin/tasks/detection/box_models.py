"""Models of the task detection with MMDetection's own heads, as :class:`TaskModel`."""

from collections.abc import Sequence
from typing import Any

from vit_plugin.arguments.fields import Section
from vit_plugin.config import framework_model
from vit_plugin.config.task_model import NORM, ModelFacts, TaskModel
from vit_plugin.from_folder.mask2former import QUERY_SCHEDULES, resize_decoder
from vit_plugin.from_folder.schedule import muon

# An anchor or proposal with this share inside an ignored region is not background.
ASSIGNER = dict(assigner=dict(ignore_iof_thr=0.5))
# Elements of the finest map along its largest RoI: MMDetection's 56 pixels at a stride of 4.
ROI_CELLS = 14


def _retinanet(facts: ModelFacts) -> Section:
    """RetinaNet, with a smaller head for narrow backbones, as in the recipe for BCCD."""
    backbone, neck, strides = facts.pyramid(facts.channels, facts.levels)
    head = dict(
        num_classes=facts.classes,
        in_channels=facts.channels,
        feat_channels=facts.channels,
        stacked_convs=4 if facts.is_wide else 2,
        norm_cfg=NORM,
        anchor_generator=dict(octave_base_scale=facts.anchor, strides=strides),
    )
    return dict(backbone=backbone, neck=neck, bbox_head=head, train_cfg=ASSIGNER)


def rcnn(
    facts: ModelFacts,
    backbone: Section,
    neck: Section,
    strides: Sequence[int],
    with_masks: bool = False,
    **box_head: Any,
) -> Section:
    """A two-stage detector of MMDetection: RPN and RoI heads.

    Narrow backbones get fewer units and fewer sampled proposals.

    Args:
        facts: the facts of the data and the backbone.
        backbone, neck, strides: see :meth:`ModelFacts.pyramid`.
        with_masks: whether to add Mask R-CNN's mask head.
        **box_head: further arguments of the box head.
    """
    wide, channels = facts.is_wide, facts.channels
    roi_extractor = dict(
        out_channels=channels,
        featmap_strides=list(strides[:4]),
        finest_scale=ROI_CELLS * strides[0],
    )
    units = 1024 if wide else 256
    bbox_head = dict(
        in_channels=channels, fc_out_channels=units, num_classes=facts.classes, **box_head
    )
    roi_head: Section = dict(bbox_roi_extractor=roi_extractor, bbox_head=bbox_head)
    if with_masks:
        roi_head['mask_roi_extractor'] = roi_extractor
        roi_head['mask_head'] = dict(
            in_channels=channels,
            conv_out_channels=channels,
            num_convs=4 if wide else 2,
            num_classes=facts.classes,
            norm_cfg=NORM,
        )
    rpn_head = dict(
        in_channels=channels,
        feat_channels=channels,
        anchor_generator=dict(scales=[facts.anchor], strides=list(strides)),
    )
    train_cfg: Section = dict(rpn=ASSIGNER, rcnn=ASSIGNER)
    model = dict(
        backbone=backbone, neck=neck, rpn_head=rpn_head, roi_head=roi_head, train_cfg=train_cfg
    )
    if not wide:
        proposals = dict(nms_pre=500, max_per_img=250)
        train_cfg |= dict(rpn_proposal=proposals, rcnn=dict(ASSIGNER, sampler=dict(num=128)))
        model['test_cfg'] = dict(rpn=proposals)
    return model


def _faster_rcnn(facts: ModelFacts) -> Section:
    return rcnn(facts, *facts.pyramid(facts.channels, facts.levels))


def _vitdet(facts: ModelFacts) -> Section:
    """A pyramid from the last map alone, and deeper heads, with a norm for small batches."""
    model = rcnn(
        facts,
        *facts.simple_pyramid(facts.channels, facts.levels),
        type='Shared4Conv1FCBBoxHead',
        conv_out_channels=facts.channels,
        norm_cfg=NORM,
    )
    model['rpn_head']['num_convs'] = 2
    return model


def _dino(facts: ModelFacts) -> Section:
    """DINO on four maps; with half the width and layers for a small backbone."""
    width = 256 if facts.is_wide else 128
    backbone, neck, strides = facts.pyramid(width, 4)
    queries = facts.queries('dino', least=900 if facts.is_wide else 100, strides=strides)
    model = resize_decoder(framework_model('mmdet::dino/dino-4scale_r50_8xb2-12e_coco.py'), width)
    model['bbox_head'] |= dict(num_classes=facts.classes, embed_dims=width)
    return model | dict(
        backbone=backbone,
        neck=neck,
        num_queries=queries,
        test_cfg=dict(max_per_img=min(300, queries * facts.classes)),
    )


RETINANET = TaskModel(
    'a RetinaNet',
    _retinanet,
    base='retinanet_r50_fpn.py',
    # Muon was measured only with this head.
    schedules={key: dict(rate=2e-3, optimizer=muon) for key in ('small', 'stem')},
    allows_wrapped=True,
)
FASTER_RCNN = TaskModel(
    'a Faster R-CNN', _faster_rcnn, base='faster-rcnn_r50_fpn.py', allows_wrapped=True
)
VITDET_DETECTOR = TaskModel('a ViTDet', _vitdet, base='faster-rcnn_r50_fpn.py', allows_wrapped=True)
DINO_DETECTOR = TaskModel('a DINO', _dino, schedules=QUERY_SCHEDULES, allows_wrapped=True)
