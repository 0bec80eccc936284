"""Convert a transformers folder to arguments of a ``TransformersBackbone``.

The project declares the function among its wrappers, through which ``--arch`` and ``--weights``
take such folders.
"""

from collections.abc import Mapping
from typing import Any

from vit_plugin.arguments.fields import Section
from vit_plugin.weights.published import get_typed

from .backbone_config import backbone_entries
from .pooled_kinds import MAP_ONLY_TYPES, POOLED_KINDS, needs_wrapper


def transformers_arguments(name: str, config: Mapping[str, Any]) -> Section:
    """The arguments of a ``TransformersBackbone``; {} for other configs.

    Args:
        name: the name of a model, unused: only folders are supported.
        config: the content of a ``config.json``.
    """
    model_type = get_typed(config, 'model_type', str, '')
    is_supported = model_type in MAP_ONLY_TYPES or needs_wrapper(model_type)
    if name or 'auto_map' in config or not is_supported:  # auto_map: code of a hub
        return {}
    return dict(config=backbone_entries(config, pooled=model_type in POOLED_KINDS))
