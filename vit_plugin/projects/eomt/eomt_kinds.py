"""The fields of EoMT's configs in transformers 5.24.

They are those of ``configuration_eomt.py`` and ``configuration_eomt_dinov3.py``.

A ``ConfigKind`` has every field of a config class: those that affect predictions with their
defaults, and the others by the reason why they do not. A field in neither is an error.
"""

from vit_plugin.weights.encoder_kinds import DINOV3_BIASES, DINOV3_UNUSED
from vit_plugin.weights.foreign_config import ConfigKind
from vit_plugin.weights.transformers_config import (
    FOR_DROPOUT,
    FOR_INITIALIZATION,
    FOR_LOSSES,
    transformers_kind,
)

_SHARED = dict(
    hidden_size=1024,
    num_hidden_layers=24,
    num_attention_heads=16,
    hidden_act='gelu',
    layer_norm_eps=1e-6,
    image_size=640,
    patch_size=16,
    num_channels=3,
    num_upscale_blocks=2,
    num_blocks=4,
    num_queries=200,
    num_register_tokens=4,
)
_LOSSES = {
    FOR_LOSSES: 'no_object_weight class_weight mask_weight dice_weight train_num_points '
    'oversample_ratio importance_sample_ratio'
}
EOMT_KIND = transformers_kind(
    dict(_SHARED, mlp_ratio=4, use_swiglu_ffn=False),
    unused={
        **_LOSSES,
        FOR_INITIALIZATION: 'initializer_range layerscale_value',
        FOR_DROPOUT: 'hidden_dropout_prob attention_dropout drop_path_rate',
    },
)
EOMT_DINOV3_KIND = transformers_kind(
    dict(
        _SHARED,
        intermediate_size=4096,
        rope_parameters=None,
        rope_theta=100.0,  # in files of transformers before 5.0
        use_gated_mlp=False,
        **DINOV3_BIASES,
    ),
    unused={**_LOSSES, **DINOV3_UNUSED},
    aliases=dict(rope_scaling='rope_parameters'),
)
# The fields of the nested dict `rope_parameters`.
ROPE_KIND = ConfigKind(
    defaults=dict(rope_type='default', rope_theta=None), aliases=dict(type='rope_type')
)
