"""Backbone and neck of a DETR without an encoder, for any backbone that ``train --data`` takes."""

from collections.abc import Mapping
from typing import Any

from vit_plugin.arguments.fields import Section
from vit_plugin.config.task_model import ModelFacts

NUM_LEVELS = 3  # number of maps in a pyramid
PYRAMID_STRIDE = 4  # pixels: a pyramid has no maps of a smaller stride


def query_maps(
    facts: ModelFacts, width: int, norm_cfg: Mapping[str, Any] | None = None
) -> tuple[Section, Section, list[int]]:
    """The configs of backbone and neck, and the strides of the neck's maps in pixels.

    A backbone with a pyramid, such as a CNN or a hybrid, gives its last three maps. Another
    backbone with several strides gives a pyramid of its last map. An encoder of one stride gives
    one map, projected from four depths.

    Args:
        facts: facts about the data and the backbone.
        width: channels of the neck's maps.
        norm_cfg: the norms of the ``C2fProjector``. Default: its own.
    """
    strides = [stride for stride in facts.meta_backbone.strides if stride >= PYRAMID_STRIDE]
    if facts.is_pyramid(PYRAMID_STRIDE):
        # The finest of the last three strides, or of all if there are only two.
        return facts.pyramid(width, NUM_LEVELS, strides[-NUM_LEVELS:][0])
    if len(facts.meta_backbone.strides) > 1:
        return facts.simple_pyramid(width, NUM_LEVELS)
    depths = facts.depths()
    neck: Section = dict(
        type='vit_plugin.C2fProjector',
        in_channels=[facts.meta_backbone.embed_dims] * len(depths),
        out_channels=width,
        **(dict(norm_cfg=dict(norm_cfg)) if norm_cfg else {}),
    )
    backbone = facts.backbone('featmap', out_indices=depths)
    return backbone, neck, list(facts.meta_backbone.strides)
