"""Convert a transformers folder to arguments of a ``TransformersBackbone``."""

from collections.abc import Mapping
from typing import Any

from vit_plugin.arguments.fields import Section
from vit_plugin.weights.published import get_typed

from .backbone_config import backbone_entries
from .pooled_kinds import MAP_ONLY_KINDS, POOLED_KINDS, reads_pooled


def wrapped_transformers(name: str, config: Mapping[str, Any]) -> Section:
    """The arguments of a ``TransformersBackbone``; {} for other configs.

    Args:
        name: the name of a model, unused: only folders are supported.
        config: the content of a ``config.json``.
    """
    kind = get_typed(config, 'model_type', str, '')
    if name or 'auto_map' in config or not (kind in MAP_ONLY_KINDS or reads_pooled(kind)):
        return {}
    return dict(config=backbone_entries(config, pooled=kind in POOLED_KINDS))
