"""EoMT for a folder of images with polygons or masks: ``train --data FOLDER --model eomt``."""

from vit_plugin.arguments.fields import Section
from vit_plugin.config.task_model import ONE_RATE, ModelFacts, TaskModel


def _backbone(facts: ModelFacts, least: int) -> Section:
    """The backbone with queries in its last blocks, with the authors' numbers."""
    layers = facts.meta_backbone.num_layers
    return dict(
        facts.arguments,
        type='vit_plugin.EoMT',
        num_classes=facts.classes,
        num_queries=facts.queries('eomt', least),
        num_blocks=min(max(layers // 2, 1), 3 + (layers > 12) + (layers > 24)),
    )


def instances(backbone: Section, **kinds: int) -> Section:
    """Mask2Former of MMDetection with EoMT's loss, for the ``kinds`` of :class:`ModelFacts`."""
    return dict(
        type='Mask2Former',
        backbone=backbone,
        panoptic_head=dict(type='vit_plugin.EoMTHead', **kinds),
        panoptic_fusion_head=dict(type='MaskFormerFusionHead', **kinds),
        test_cfg=dict(
            panoptic_on=kinds['num_stuff_classes'] > 0,
            semantic_on=False,
            instance_on=True,
            max_per_image=min(100, backbone['num_queries'] * backbone['num_classes']),
            iou_thr=0.8,
            filter_low_score=True,
            object_mask_thr=0.8,
        ),
    )


def _instance(facts: ModelFacts) -> Section:
    model = instances(_backbone(facts, 200 if facts.is_wide else 40), **facts.class_counts)
    model['test_cfg'] |= facts.output_kinds
    return dict(model, train_cfg=dict(num_points=facts.mask_points))


def _semantic(facts: ModelFacts) -> Section:
    points = dict(num_points=facts.mask_points)
    head = dict(type='vit_plugin.EoMTDecodeHead', num_classes=facts.classes, train_cfg=points)
    return dict(backbone=_backbone(facts, 100 if facts.is_wide else 20), decode_head=head)


INSTANCE = TaskModel(
    'an EoMT',
    _instance,
    schedules=dict(fine_tuned=dict(ONE_RATE, rate=2e-4, clip=0.01)),
    imports=('vit_plugin.detection', 'mmdet.models'),  # for its losses
    hooks=(dict(type='vit_plugin.MaskAnnealingHook'),),
)
SEMANTIC = INSTANCE._replace(build=_semantic)
