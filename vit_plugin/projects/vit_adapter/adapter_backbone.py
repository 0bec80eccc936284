"""Build the transformer within a ViT-Adapter, and find its weights in the authors' files."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import nn

from vit_plugin.arguments.fields import OpenDict
from vit_plugin.errors import ConfigError
from vit_plugin.models.backbones.vit import VisionTransformer
from vit_plugin.models.layers.recompute import Recompute
from vit_plugin.models.loading.hooks import keep_shards
from vit_plugin.registry import MODELS, SCOPE

from .vit_adapter_names import ADAPTER_MODULES


class BackboneCfg(OpenDict, total=False):
    """The config of a :class:`VisionTransformer`, whose constructor checks the other entries."""

    type: str | type
    encoder: dict | None


def build_backbone(
    cfg: Mapping[str, Any], interactions: int | Sequence[int], inject: bool, with_cp: Recompute
) -> VisionTransformer:
    """Build the transformer.

    Args:
        cfg: its config.
        interactions, inject, with_cp: see :class:`~vit_plugin.models.ViTAdapter`. Listed
            interactions become its ``out_indices``, which checks and normalizes them.

    Raises:
        ConfigError: if the config sets its outputs, if it is that of another class, or if the
            patch size varies.
    """
    for name in ('out_indices', 'out_type'):
        if name in cfg:
            raise ConfigError(
                f'ViTAdapter: backbone.{name} is what the adapter sets itself; leave it out, '
                "and give interactions for the groups of blocks, or the adapter's own "
                'out_indices for the maps.'
            )
    backbone_type = cfg.get('type', 'VisionTransformer')
    backbone_type = MODELS.get(backbone_type) if isinstance(backbone_type, str) else backbone_type
    if not isinstance(backbone_type, type) or not issubclass(backbone_type, VisionTransformer):
        raise ConfigError(
            f'ViTAdapter: backbone.type={cfg["type"]!r} is not a vit_plugin backbone; give the '
            'config of a vit_plugin.VisionTransformer.'
        )
    fixed = dict(
        _scope_=SCOPE,
        type=backbone_type,
        encoder={'final_norm': not inject, **(cfg.get('encoder') or {})},
        out_type='raw',
        out_indices=-1 if isinstance(interactions, int) else interactions,
    )
    backbone = MODELS.build({'with_cp': with_cp, **cfg, **fixed})
    backbone.patch_embed.check_fixed_patch_size('ViTAdapter')  # positions depend on the patch size
    return backbone


def add_backbone_prefix(adapter: nn.Module, state: dict[str, Any], prefix: str, *args: Any) -> None:
    """``load_state_dict`` hook: add the prefix ``backbone.`` where the authors' files lack it.

    Every key that does not belong to the adapter gets the prefix, in place. The backbone has a hook
    of its own, which runs afterwards.
    """
    for key in [key for key in state if isinstance(key, str) and key.startswith(prefix)]:
        name = key.removeprefix(prefix)
        if name.partition('.')[0] not in ADAPTER_MODULES:
            state[f'{prefix}backbone.{name}'] = state.pop(key)
    keep_shards(adapter, state, prefix)
