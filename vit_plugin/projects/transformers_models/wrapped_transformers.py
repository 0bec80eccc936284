"""A folder of transformers as arguments of the backbone that computes it."""

from collections.abc import Mapping
from typing import Any

from vit_plugin.arguments.fields import Section
from vit_plugin.weights.published import told
from vit_plugin.weights.unread_kinds import WRAPPED

from .backbone_config import entries_of


def wrapped_transformers(name: str, config: Mapping[str, Any]) -> Section:
    """The arguments of a ``TransformersBackbone``; {} for other configs.

    Args:
        name: that of a model, which transformers has none of here.
        config: the content of a ``config.json``.
    """
    if name or told(config, 'model_type', str, '') not in WRAPPED or 'auto_map' in config:
        return {}
    return dict(config=entries_of(config))
