"""The detectors of MMDetection's own heads, for a folder of images with boxes or polygons."""

from collections.abc import Sequence
from typing import Any

from vit_plugin.arguments.fields import Section
from vit_plugin.config import framework_model
from vit_plugin.config.task_model import NORM, ModelFacts, TaskModel

from .schedule import muon

# An anchor or proposal of which so much is in what is to be ignored is no background.
ASSIGNER = dict(assigner=dict(ignore_iof_thr=0.5))
MASK2FORMER_RECIPE = 'mmdet::mask2former/mask2former_r50_8xb2-lsj-50e_coco.py'
CELLS = 14  # of the finest map, along a side of the largest object that is taken from it


def _retinanet(facts: ModelFacts) -> Section:
    """RetinaNet's head, narrower and shorter for few channels, as in the recipe for BCCD."""
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


def _rcnn(
    facts: ModelFacts,
    backbone: Section,
    neck: Section,
    strides: Sequence[int],
    masks: bool = False,
    **head: Any,
) -> Section:
    """MMDetection's heads. Few channels have fewer units, and fewer proposals to learn from."""
    wide, channels = facts.is_wide, facts.channels
    regions = dict(
        out_channels=channels, featmap_strides=list(strides[:4]), finest_scale=CELLS * strides[0]
    )
    units = 1024 if wide else 256
    head = dict(in_channels=channels, fc_out_channels=units, num_classes=facts.classes, **head)
    roi_head: Section = dict(bbox_roi_extractor=regions, bbox_head=head)
    if masks:
        roi_head['mask_roi_extractor'] = regions
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
    learned: Section = dict(rpn=ASSIGNER, rcnn=ASSIGNER)
    model = dict(
        backbone=backbone, neck=neck, rpn_head=rpn_head, roi_head=roi_head, train_cfg=learned
    )
    if not wide:
        proposals = dict(nms_pre=500, max_per_img=250)
        learned |= dict(rpn_proposal=proposals, rcnn=dict(ASSIGNER, sampler=dict(num=128)))
        model['test_cfg'] = dict(rpn=proposals)
    return model


def _faster_rcnn(facts: ModelFacts) -> Section:
    return _rcnn(facts, *facts.pyramid(facts.channels, facts.levels))


def _mask_rcnn(facts: ModelFacts) -> Section:
    return _rcnn(facts, *facts.pyramid(facts.channels, facts.levels), masks=True)


def _vitdet(facts: ModelFacts) -> Section:
    """The pyramid of the last map, and deeper heads, with the norm for small batches."""
    model = _rcnn(
        facts,
        *facts.simple_pyramid(facts.channels, facts.levels),
        type='Shared4Conv1FCBBoxHead',
        conv_out_channels=facts.channels,
        norm_cfg=NORM,
    )
    model['rpn_head']['num_convs'] = 2
    return model


def _dino(facts: ModelFacts) -> Section:
    """DINO's four maps; for a small backbone with half of the width and of the layers."""
    width = 256 if facts.is_wide else 128
    backbone, neck, strides = facts.pyramid(width, 4)
    queries = facts.queries('dino', 900 if facts.is_wide else 100, strides)
    model = resized(framework_model('mmdet::dino/dino-4scale_r50_8xb2-12e_coco.py'), width)
    model['bbox_head'] |= dict(num_classes=facts.classes, embed_dims=width)
    return model | dict(
        backbone=backbone,
        neck=neck,
        num_queries=queries,
        test_cfg=dict(max_per_img=min(300, queries * facts.classes)),
    )


def resized(section: Any, width: int) -> Any:
    """A section of a query decoder with this width, and fewer layers if it is not 256."""
    sizes = dict(
        embed_dims=width,
        feat_channels=width,
        out_channels=width,
        num_feats=width // 2,
        **({} if width == 256 else dict(feedforward_channels=4 * width, num_layers=3)),
    )
    if isinstance(section, dict):
        return {name: sizes.get(name, resized(part, width)) for name, part in section.items()}
    return section


def mask2former_head(head: Section, width: int, strides: Sequence[int]) -> Section:
    """Mask2Former's head for four maps of this width."""
    return resized(head, width) | dict(in_channels=[width] * 4, strides=list(strides))


def _mask2former(facts: ModelFacts) -> Section:
    width = 256 if facts.is_wide else 128
    backbone, neck, strides = facts.pyramid(width, 4, finest=4)
    model = framework_model(MASK2FORMER_RECIPE)
    classes, queries = facts.classes, facts.queries('mask2former', 100 if facts.is_wide else 40)
    head = mask2former_head(model['panoptic_head'], width, strides)
    head |= dict(**facts.kinds, num_queries=queries)
    head['loss_cls']['class_weight'] = [1.0] * classes + [0.1]
    model['panoptic_fusion_head'] |= facts.kinds
    model['train_cfg']['num_points'] = facts.points
    model['test_cfg'] |= dict(max_per_image=min(100, queries * classes), **facts.answers)
    return model | dict(backbone=backbone, neck=neck, panoptic_head=head)


# Models with queries; not measured.
QUERIES: Section = dict(
    small=dict(clip=0.1),
    scratch=dict(rate=2e-4, clip=0.1),
    fine_tuned=dict(weight_decay=1e-4, clip=0.1),
)
RETINANET = TaskModel(
    'a RetinaNet',
    _retinanet,
    'retinanet_r50_fpn.py',
    # Not measured with another head.
    {kind: dict(rate=2e-3, optimizer=muon) for kind in ('small', 'stem')},
    wraps=True,
)
FASTER_RCNN = TaskModel('a Faster R-CNN', _faster_rcnn, 'faster-rcnn_r50_fpn.py', wraps=True)
VITDET = TaskModel('a ViTDet', _vitdet, 'faster-rcnn_r50_fpn.py', wraps=True)
DINO = TaskModel('a DINO', _dino, schedules=QUERIES, wraps=True)
MASK_RCNN = TaskModel('a Mask R-CNN', _mask_rcnn, 'mask-rcnn_r50_fpn.py', wraps=True)
MASK2FORMER = TaskModel(
    'a Mask2Former',
    _mask2former,
    schedules=QUERIES,
    saved=dict(panoptic_head=dict(type='Mask2FormerHead')),
    wraps=True,
)
