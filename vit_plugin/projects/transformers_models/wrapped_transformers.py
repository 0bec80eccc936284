"""A folder of transformers as arguments of the backbone that computes it."""

from collections.abc import Mapping
from typing import Any

from vit_plugin.arguments.fields import Section
from vit_plugin.weights.published import told

from .backbone_config import entries_of
from .pooled_kinds import MAPS_ALONE, POOLED, is_read


def wrapped_transformers(name: str, config: Mapping[str, Any]) -> Section:
    """The arguments of a ``TransformersBackbone``; {} for other configs.

    Args:
        name: that of a model, which transformers has none of here.
        config: the content of a ``config.json``.
    """
    kind = told(config, 'model_type', str, '')
    if name or 'auto_map' in config or not (kind in MAPS_ALONE or is_read(kind, config)):
        return {}
    return dict(config=entries_of(config, pooled=kind in POOLED))
