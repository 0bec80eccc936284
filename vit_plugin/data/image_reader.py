"""Choose the image reader of a config, without MMCV, which the readers need."""

from collections.abc import Mapping
from typing import Any

from mmengine.config import ConfigDict

# The arguments that `LoadImage` takes, MMCV's and its own, as names, since its module needs MMCV.
LOAD_IMAGE_ARGUMENTS = {
    'to_float32',
    'color_type',
    'imdecode_backend',
    'ignore_empty',
    'backend_args',
    'window',
    'bands',
}


def use_our_image_reader(cfg: Any) -> Any:
    """Replace ``LoadImageFromFile`` by our reader in a copy of a config.

    All commands then see the same pixels, see :class:`~vit_plugin.data.images.LoadImage`. The
    config itself is unchanged, since the frameworks' inferencers look for the name. A step with
    arguments of another reader is kept.
    """
    if isinstance(cfg, Mapping):
        name = cfg.get('type')
        is_framework_reader = (
            isinstance(name, str) and name.rpartition('.')[2] == 'LoadImageFromFile'
        )
        if is_framework_reader and cfg.keys() - {'type', '_scope_'} <= LOAD_IMAGE_ARGUMENTS:
            return dict(cfg, type='vit_plugin.LoadImage')
        entries = {key: use_our_image_reader(value) for key, value in cfg.items()}
        return ConfigDict(entries) if isinstance(cfg, ConfigDict) else entries
    if type(cfg) in (list, tuple):
        return type(cfg)(map(use_our_image_reader, cfg))
    return cfg
