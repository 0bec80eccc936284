"""Depth models for ``train --task depth --model NAME``."""

from vit_plugin.arguments.fields import Section
from vit_plugin.config.task_model import NORM, ModelFacts, TaskModel

WIDE_DECODER, NARROW_DECODER = 128, 64  # channels of DPT's decoder
LINEAR_STRIDE = 4  # pixels; stride of a linear head's predictions


def _maps(facts: ModelFacts) -> tuple[Section, list[int], list[int]]:
    """A backbone with a hybrid's maps or those of four blocks, and their widths and strides."""
    depths = facts.depths() if len(facts.meta_backbone.strides) == 1 else ()
    options = dict(out_indices=list(depths)) if depths else {}
    built = facts.build(out_type='pyramid', **options)
    return facts.backbone('pyramid', **options), list(built.channels), list(built.strides)


def _dpt(facts: ModelFacts) -> Section:
    backbone, channels, strides = _maps(facts)
    head = dict(
        type='vit_plugin.DPTDepthHead',
        in_channels=channels,
        strides=strides,
        channels=WIDE_DECODER if facts.is_wide else NARROW_DECODER,
        norm_cfg=NORM,
        max_depth=facts.task_facts['farthest'],
    )
    return dict(backbone=backbone, decode_head=head)


def _linear(facts: ModelFacts) -> Section:
    backbone, channels, strides = _maps(facts)
    head = dict(
        type='vit_plugin.LinearDepthHead',
        in_channels=channels,
        max_depth=facts.task_facts['farthest'],
        upsample=max(strides[0] // LINEAR_STRIDE, 1),
    )
    return dict(backbone=backbone, decode_head=head)


DPT = TaskModel(
    "DPT's decoder", _dpt, saved_entries=dict(decode_head=dict(type='vit_plugin.DPTDepthHead'))
)
LINEAR_DEPTH = TaskModel(
    "DINOv2's linear head for depth",
    _linear,
    saved_entries=dict(decode_head=dict(type='vit_plugin.LinearDepthHead')),
)
