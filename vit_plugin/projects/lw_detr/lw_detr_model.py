"""LW-DETR for a folder of images with boxes: ``vit-plugin train --data FOLDER --model lw-detr``."""

from vit_plugin.arguments.fields import Section
from vit_plugin.config.task_model import ModelFacts, TaskModel

from ..detr_family.folder_detector import DETR_SCHEDULES
from ..detr_family.query_maps import query_maps


def _lw_detr(facts: ModelFacts) -> Section:
    """The model: its decoder attends to three maps of a pyramid, or to one map of a plain ViT.

    With a narrow backbone, queries, groups and decoder are those of the recipe for BCCD.
    """
    is_wide, width = facts.is_wide, facts.channels
    backbone, neck, strides = query_maps(facts, width)
    queries = facts.queries('lw-detr', 300 if is_wide else 60, strides)
    decoder = dict(num_points=2)
    if not is_wide:
        decoder |= dict(num_layers=2, num_heads=4, num_cross_heads=8, feedforward_channels=384)
    return dict(
        type='SingleStageDetector',
        backbone=backbone,
        neck=neck,
        bbox_head=dict(
            type='vit_plugin.LWDETRHead',
            num_classes=facts.classes,
            num_queries=queries,
            num_groups=13 if is_wide else 4,
            num_levels=len(strides),
            embed_dims=width,
            decoder=decoder,
        ),
        test_cfg=dict(max_per_img=queries),
    )


LW_DETR = TaskModel(
    'an LW-DETR',
    _lw_detr,
    schedules=dict(small=dict(rate=2e-3), fine_tuned=DETR_SCHEDULES['fine_tuned']),
    saved_entries=dict(backbone=dict(type='vit_plugin.VisionTransformer')),
    allows_wrapped=True,
)
