"""Build the stem of a backbone from its config."""

from collections.abc import Mapping
from typing import Any

from vit_plugin.errors import ConfigError
from vit_plugin.registry import MODELS, SCOPE

from .stem import Stem


def build_stem(default: Mapping[str, Any], patch_embed: Mapping[str, Any], **common: Any) -> Stem:
    """Build a stem.

    Args:
        default: the config that the arch names.
        patch_embed: changes of ``default``, or the config of a stem of a different type.
        **common: arguments of every stem, among them ``embed_dims``, the width of the blocks.

    Raises:
        ConfigError: if the type is missing, or if the width differs from that of the blocks.
    """
    has_same_type = 'type' not in patch_embed or (
        _type_name(patch_embed['type']) == _type_name(default.get('type'))
    )
    cfg = {**default, **patch_embed} if has_same_type else dict(patch_embed)
    if 'type' not in cfg:
        raise ConfigError(
            "This arch names no patch size: write 'B/16' for 'B', or give "
            "patch_embed=dict(type='PatchEmbed', patch_size=16)."
        )
    if cfg.get('embed_dims', common['embed_dims']) != common['embed_dims']:
        raise ConfigError(
            f'patch_embed: embed_dims={cfg["embed_dims"]} differs from the width of the '
            f'blocks, {common["embed_dims"]}; leave it out, since arch sets it.'
        )
    return MODELS.build(dict(cfg, _scope_=SCOPE), default_args=common)


def _type_name(kind: Any) -> str:
    """The name of a stem's type, without the scope of this package."""
    if isinstance(kind, type) and issubclass(kind, Stem):
        return kind.__name__
    return str(kind).removeprefix(f'{SCOPE}.')
