"""Mask2Former on a backbone, for instance and panoptic segmentation."""

from collections.abc import Sequence
from typing import Any

from vit_plugin.arguments.fields import Section
from vit_plugin.config import framework_model
from vit_plugin.config.task_model import ONE_RATE, ModelFacts, TaskModel

MMDET_MASK2FORMER = 'mmdet::mask2former/mask2former_r50_8xb2-lsj-50e_coco.py'
# Changed fields of the schedules for models with queries, by StartingPoint.schedule_key; not tuned.
QUERY_SCHEDULES: Section = dict(
    small=dict(clip=0.1),
    scratch=dict(rate=2e-4, clip=0.1),
    fine_tuned=dict(ONE_RATE, weight_decay=1e-4, clip=0.1),
)


def resize_decoder(section: Any, width: int) -> Any:
    """The config of a query decoder, with each nested width set to ``width``.

    The published configs are of width 256. A narrower decoder also has fewer layers.
    """
    sizes = dict(
        embed_dims=width,
        feat_channels=width,
        out_channels=width,
        num_feats=width // 2,
        **({} if width == 256 else dict(feedforward_channels=4 * width, num_layers=3)),
    )
    if isinstance(section, dict):
        return {
            name: sizes.get(name, resize_decoder(value, width)) for name, value in section.items()
        }
    return section


def mask2former_head(head: Section, width: int, strides: Sequence[int]) -> Section:
    """Mask2Former's head for four feature maps with ``width`` channels."""
    return resize_decoder(head, width) | dict(in_channels=[width] * 4, strides=list(strides))


def _mask2former(facts: ModelFacts) -> Section:
    width = 256 if facts.is_wide else 128
    backbone, neck, strides = facts.pyramid(width, 4, finest=4)
    model = framework_model(MMDET_MASK2FORMER)
    classes = facts.classes
    queries = facts.queries('mask2former', least=100 if facts.is_wide else 40)
    head = mask2former_head(model['panoptic_head'], width, strides)
    head |= dict(**facts.class_counts, num_queries=queries)
    head['loss_cls']['class_weight'] = [1.0] * classes + [0.1]  # the last: no object
    model['panoptic_fusion_head'] |= facts.class_counts
    model['train_cfg']['num_points'] = facts.mask_points
    model['test_cfg'] |= dict(max_per_image=min(100, queries * classes), **facts.output_kinds)
    return model | dict(backbone=backbone, neck=neck, panoptic_head=head)


MASK2FORMER_INSTANCES = TaskModel(
    'a Mask2Former',
    _mask2former,
    schedules=QUERY_SCHEDULES,
    saved_entries=dict(panoptic_head=dict(type='Mask2FormerHead')),
    allows_wrapped=True,
)
