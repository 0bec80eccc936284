"""Depth models for a folder: ``vit-plugin train --task depth --model dpt`` or ``linear``."""

from vit_plugin.arguments.fields import Section
from vit_plugin.config.task_model import NORM, ModelFacts, TaskModel

WIDE_DECODER, NARROW_DECODER = 128, 64  # channels of DPT's decoder
LINEAR_STRIDE = 4  # pixels; stride of a linear head's predictions


def _pyramid(facts: ModelFacts) -> tuple[Section, list[int], list[int]]:
    """A backbone with several maps, and their channels and strides.

    The maps are those of the CNN in front of a hybrid, or of four blocks of a plain transformer.
    """
    # A hybrid has several strides already.
    blocks = facts.depths() if len(facts.meta_backbone.strides) == 1 else ()
    options = dict(out_indices=list(blocks)) if blocks else {}
    built = facts.build(out_type='pyramid', **options)
    return facts.backbone('pyramid', **options), list(built.channels), list(built.strides)


def _dpt(facts: ModelFacts) -> Section:
    """A backbone with DPT's decoder, which predicts up to the largest depth in the data."""
    backbone, channels, strides = _pyramid(facts)
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
    """A backbone with DINOv2's linear head."""
    backbone, channels, strides = _pyramid(facts)
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
