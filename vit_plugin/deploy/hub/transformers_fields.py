"""The fields of transformers' ``config.json`` for a model of this package."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor, nn

from vit_plugin.arch import Arch, parse_arch
from vit_plugin.arguments.fields import Section
from vit_plugin.errors import ConfigError
from vit_plugin.weights import recognize
from vit_plugin.weights.image_kinds import (
    IMAGE_KINDS,
    OFFSETS_BIAS,
    POSITION_KEY,
    SCALE,
    SHARED_BIAS,
    ImageKind,
)
from vit_plugin.weights.published_encoder import (
    ACT_CFGS,
    hidden_channels,
    options_of_weights,
    shown_fields,
)
from vit_plugin.weights.published_image_model import ATTENTION_POOL, POOL_NORM

from .hub_folder import norm_eps


def fields_of(backbone: nn.Module, state: Mapping[str, Tensor]) -> Section:
    """The values of all fields that any kind may have, by their names in transformers."""
    sizes, (height, width) = parse_arch(backbone.arch), backbone.img_size
    names = ('embed_dims', 'num_layers', 'feedforward_channels')
    options = options_of_weights(state)
    arch = {name: getattr(sizes, name) for name in names}
    return dict(
        shown_fields(arch, options),
        num_attention_heads=sizes.num_heads,
        mlp_ratio=_mlp_ratio(sizes, options['gated_mlp']),
        hidden_act=_activation(backbone),
        layer_norm_eps=norm_eps(backbone),
        image_size=height if height == width else [height, width],
        patch_size=backbone.patch_embed.patch_size,
        num_channels=backbone.in_channels,
        rope_theta=backbone.rope.options.temperature if hasattr(backbone.rope, 'options') else None,
        vision_use_head=ATTENTION_POOL in state,
        use_head=ATTENTION_POOL in state,
        is_native=POSITION_KEY not in state,
        use_absolute_position_embeddings=POSITION_KEY in state,
        use_relative_position_bias=OFFSETS_BIAS in state,
        use_shared_relative_position_bias=SHARED_BIAS in state,
        use_mean_pooling=POOL_NORM in state,
        layer_scale_init_value=0.1 if SCALE in state else 0.0,  # any value: weights replace it
    )


def _mlp_ratio(sizes: Arch, gated: bool) -> float:
    """The MLP ratio for this number of channels, an integer if possible.

    It is the inverse of :func:`hidden_channels`, which takes two thirds if the MLP is gated.
    """
    width, hidden = sizes.embed_dims, sizes.feedforward_channels
    ratio = hidden * (1.5 if gated else 1) / width
    for candidate in (math.floor(ratio), math.ceil(ratio), ratio):
        if hidden_channels(width, candidate, gated) == hidden:
            return candidate
    return ratio + 0.5 / width  # half a channel more, since the product is rounded down


def _activation(backbone: nn.Module) -> str:
    wanted = {'approximate': 'none', **backbone.numerics.act_cfg}
    for name, cfg in ACT_CFGS.items():
        if {'type': 'GELU', 'approximate': 'none', **cfg} == wanted:
            return name
    raise ConfigError(f'its activation is {backbone.numerics.act_cfg["type"]}')


def _own_fields(kind: ImageKind, fields: Section) -> Section:
    """The fields that a kind has, by the names in its files."""
    aliases = {field: alias for alias, field in kind.config.aliases.items()}
    return {
        aliases.get(field, field): fields[field]
        for field in kind.config.defaults
        if field in fields
    }


def encoder_config(backbone: nn.Module, name: str) -> Section:
    """The config of a transformer within that of a detector, by its ``model_type``."""
    state = dict(recognize(backbone.state_dict()))
    return dict(model_type=name, **_own_fields(IMAGE_KINDS[name], fields_of(backbone, state)))


def folder_config(
    name: str, kind: ImageKind, class_name: str, fields: Section, classes: list[str]
) -> dict[str, Any]:
    """The content of ``config.json`` for a class of a kind, whose ``model_type`` is ``name``."""
    own = _own_fields(kind, fields)
    if kind.towers:
        own = dict(vision_config=dict(own, model_type=f'{name}_vision_model'))
    config = dict(architectures=[class_name], model_type=name, **own, dtype='float32')
    return transformers_with_classes(config, classes) if 'Classification' in class_name else config


def transformers_with_classes(
    config: Mapping[str, Any], classes: Sequence[str], pixels: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """A transformers config with class names.

    ``pixels`` is unused, since the preprocessing has a file of its own. It is there because
    ``timm_with_classes`` is called in the same way.
    """
    return dict(
        config,
        id2label={str(i): label for i, label in enumerate(classes)},
        label2id={label: i for i, label in enumerate(classes)},
    )
