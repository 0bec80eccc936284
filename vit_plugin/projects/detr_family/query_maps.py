"""The maps for a decoder of queries, on any backbone."""

from collections.abc import Mapping
from typing import Any

from vit_plugin.arguments.fields import Section
from vit_plugin.config.task_model import ModelFacts

LEVELS, FINEST = 3, 4  # maps of a pyramid, and the stride of its finest one in pixels


def query_maps(
    facts: ModelFacts, width: int, norm_cfg: Mapping[str, Any] | None = None
) -> tuple[Section, Section, list[int]]:
    """The backbone, its neck with maps of this width, and their strides.

    The last three maps of a pyramid, as of a CNN or a hybrid, or else one of four depths of an
    encoder of one width. Other backbones give the pyramid of their last map.

    Args:
        facts: of the data and the backbone.
        width: channels of the maps.
        norm_cfg: the norms of the projector of four depths. Default: its own.
    """
    strides = [stride for stride in facts.meta_backbone.strides if stride >= FINEST]
    if facts.is_pyramid(FINEST):
        return facts.pyramid(width, LEVELS, strides[-LEVELS:][0])
    if len(facts.meta_backbone.strides) > 1:
        return facts.simple_pyramid(width, LEVELS)
    depths = facts.depths()
    neck: Section = dict(
        type='vit_plugin.C2fProjector',
        in_channels=[facts.meta_backbone.embed_dims] * len(depths),
        out_channels=width,
        **(dict(norm_cfg=dict(norm_cfg)) if norm_cfg else {}),
    )
    return facts.backbone('featmap', out_indices=depths), neck, strides
