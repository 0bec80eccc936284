"""Encoders of transformers that our backbone computes, by the ``model_type`` of their config.

Each has a :class:`~vit_plugin.weights.foreign_config.ConfigKind` with all fields of its config,
since a field that no reader expects is an error. The fields and defaults are those of the class of
this ``model_type`` in transformers 5.24, ``models/*/configuration_*.py``.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from .foreign_config import ConfigKind
from .transformers_config import (
    FOR_DROPOUT,
    FOR_INITIALIZATION,
    FOR_MASKING,
    STAGE_FIELDS,
    transformers_kind,
)

# Entries about the feature maps of a backbone. A model that returns tokens does not read them.
MAP_FIELDS: Mapping[str, Any] = dict(STAGE_FIELDS, apply_layernorm=True, reshape_hidden_states=True)
_DINOV2: Mapping[str, Any] = dict(
    hidden_size=768,
    num_hidden_layers=12,
    num_attention_heads=12,
    mlp_ratio=4,
    hidden_act='gelu',
    layer_norm_eps=1e-6,
    image_size=224,
    patch_size=14,
    num_channels=3,
    qkv_bias=True,
    use_swiglu_ffn=False,
    **MAP_FIELDS,
)
# Fields that do not affect predictions, by the reason.
_UNUSED = {
    FOR_INITIALIZATION: 'initializer_range layerscale_value',
    FOR_DROPOUT: 'hidden_dropout_prob attention_probs_dropout_prob drop_path_rate',
    FOR_MASKING: 'use_mask_token',
}
# Fields of DINOv3's blocks, which configs of `eomt_dinov3` have too.
DINOV3_BIASES: Mapping[str, Any] = dict(
    query_bias=True, key_bias=False, value_bias=True, proj_bias=True, mlp_bias=True
)
DINOV3_UNUSED = {
    FOR_INITIALIZATION: 'initializer_range layerscale_value',
    FOR_DROPOUT: 'attention_dropout hidden_dropout_prob drop_path_rate',
    'random shifts of positions in training': 'pos_embed_shift pos_embed_jitter pos_embed_rescale',
}


class EncoderKind(NamedTuple):
    """An encoder of transformers.

    Attributes:
        config: the fields of its config.
        interpolate_mode: how its code resamples its position table, see
            :class:`~vit_plugin.models.layers.pos_embed.PosEmbed`. Empty: it has rotary positions.
        models: the classes of transformers that are only this encoder, without a head.
    """

    config: ConfigKind
    interpolate_mode: str
    models: tuple[str, ...]


ENCODER_KINDS = {
    'dinov2': EncoderKind(
        transformers_kind(_DINOV2, unused=_UNUSED),
        # `Dinov2Embeddings.interpolate_pos_encoding`: without a filter.
        interpolate_mode='bicubic_mmpretrain',
        models=('Dinov2Model',),
    ),
    'dinov2_with_registers': EncoderKind(
        transformers_kind(dict(_DINOV2, patch_size=16, num_register_tokens=4), unused=_UNUSED),
        # `Dinov2WithRegistersEmbeddings.interpolate_pos_encoding`: antialias=True.
        interpolate_mode='bicubic',
        models=('Dinov2WithRegistersModel',),
    ),
    'dinov3_vit': EncoderKind(
        transformers_kind(
            dict(
                patch_size=16,
                hidden_size=384,
                intermediate_size=1536,
                num_hidden_layers=12,
                num_attention_heads=6,
                hidden_act='gelu',
                layer_norm_eps=1e-5,
                rope_theta=100.0,
                image_size=224,
                num_channels=3,
                **DINOV3_BIASES,
                use_gated_mlp=False,
                num_register_tokens=0,
                **MAP_FIELDS,
            ),
            unused=DINOV3_UNUSED,
        ),
        interpolate_mode='',
        models=('DINOv3ViTModel',),
    ),
}
