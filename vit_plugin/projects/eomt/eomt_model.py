"""EoMT for a folder of images with polygons or masks: ``train --data FOLDER --model eomt``."""

from vit_plugin.arguments.fields import Section
from vit_plugin.config.task_model import ONE_RATE, ModelFacts, TaskModel


def _backbone(facts: ModelFacts, min_queries: int) -> Section:
    """The config of an ``EoMT``.

    The number of blocks with queries is the authors' for this depth, but at most half of the depth.

    Args:
        facts: facts about the data and the backbone.
        min_queries: minimum number of queries.
    """
    layers = facts.meta_backbone.num_layers
    if layers <= 12:
        num_blocks = 3
    elif layers <= 24:
        num_blocks = 4
    else:
        num_blocks = 5
    return dict(
        facts.arguments,
        type='vit_plugin.EoMT',
        num_classes=facts.classes,
        num_queries=facts.queries('eomt', min_queries),
        num_blocks=min(max(layers // 2, 1), num_blocks),
    )


def eomt_mask2former(backbone: Section, **class_counts: int) -> Section:
    """Mask2Former of MMDetection with EoMT's head.

    Args:
        backbone: the config of an ``EoMT``.
        **class_counts: ``num_things_classes`` and ``num_stuff_classes``.
    """
    return dict(
        type='Mask2Former',
        backbone=backbone,
        panoptic_head=dict(type='vit_plugin.EoMTHead', **class_counts),
        panoptic_fusion_head=dict(type='MaskFormerFusionHead', **class_counts),
        test_cfg=dict(
            panoptic_on=class_counts['num_stuff_classes'] > 0,
            semantic_on=False,
            instance_on=True,
            max_per_image=min(100, backbone['num_queries'] * backbone['num_classes']),
            iou_thr=0.8,
            filter_low_score=True,
            object_mask_thr=0.8,
        ),
    )


def _mask2former(facts: ModelFacts) -> Section:
    """The model for instance and panoptic masks."""
    model = eomt_mask2former(_backbone(facts, 200 if facts.is_wide else 40), **facts.class_counts)
    model['test_cfg'] |= facts.output_kinds
    return dict(model, train_cfg=dict(num_points=facts.mask_points))


def _semantic(facts: ModelFacts) -> Section:
    """The model for semantic segmentation."""
    points = dict(num_points=facts.mask_points)
    head = dict(type='vit_plugin.EoMTDecodeHead', num_classes=facts.classes, train_cfg=points)
    return dict(backbone=_backbone(facts, 100 if facts.is_wide else 20), decode_head=head)


EOMT_MASK2FORMER = TaskModel(
    'an EoMT',
    _mask2former,
    schedules=dict(fine_tuned=dict(ONE_RATE, rate=2e-4, clip=0.01)),
    imports=('vit_plugin.detection', 'mmdet.models'),  # its losses are MMDetection's in any task
    hooks=(dict(type='vit_plugin.MaskAnnealingHook'),),
    saved_entries=dict(backbone=dict(type='vit_plugin.EoMT')),
)
EOMT_SEMANTIC = EOMT_MASK2FORMER._replace(build=_semantic)
