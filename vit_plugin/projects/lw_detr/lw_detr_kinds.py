"""The fields of LW-DETR's configs in transformers 5.24 (``configuration_lw_detr.py``).

A ``ConfigKind`` has every field of a config class: those that affect predictions with their
defaults, and the others by the reason why they do not. A field in neither is an error.
"""

from vit_plugin.weights.transformers_config import (
    BACKBONE_UNUSED,
    FOR_DROPOUT,
    FOR_INITIALIZATION,
    FOR_LOSSES,
    NAMED_BACKBONE,
    STAGE_FIELDS,
    transformers_kind,
)

LW_DETR_KIND = transformers_kind(
    dict(
        backbone_config=None,
        projector_scale_factors=(),
        hidden_expansion=0.5,
        c2f_num_blocks=3,
        activation_function='silu',
        batch_norm_eps=1e-5,
        decoder_ffn_dim=2048,
        decoder_n_points=4,
        decoder_layers=3,
        decoder_self_attention_heads=8,
        decoder_cross_attention_heads=16,
        decoder_activation_function='relu',
        num_queries=300,
        attention_bias=True,
        group_detr=13,
        d_model=256,
        num_feature_levels=None,  # derived from the scales
        **NAMED_BACKBONE,
    ),
    unused={
        **BACKBONE_UNUSED,
        FOR_INITIALIZATION: 'init_std',
        FOR_DROPOUT: 'dropout attention_dropout activation_dropout',
        FOR_LOSSES: 'class_cost bbox_cost giou_cost class_loss_coefficient mask_loss_coefficient '
        'dice_loss_coefficient bbox_loss_coefficient giou_loss_coefficient eos_coefficient '
        'focal_alpha auxiliary_loss',
        'how a GPU computes the same': 'disable_custom_kernels',
        'values that follow from other fields, and that no code reads': 'projector_in_channels '
        'projector_out_channels',
    },
)
LW_DETR_VIT_KIND = transformers_kind(
    dict(
        hidden_size=768,
        num_hidden_layers=12,
        num_attention_heads=12,
        mlp_ratio=4,
        hidden_act='gelu',
        layer_norm_eps=1e-6,
        pretrain_image_size=224,
        image_size=256,
        patch_size=16,
        num_channels=3,
        qkv_bias=True,
        window_block_indices=(),
        use_absolute_position_embeddings=True,
        num_windows=16,  # in an image, not along a side
        num_windows_side=None,  # derived: the square root of num_windows
        **STAGE_FIELDS,
    ),
    unused={FOR_INITIALIZATION: 'initializer_range cae_init_values', FOR_DROPOUT: 'dropout_prob'},
)
# The default `backbone_config`: fields with other values than in LW_DETR_VIT_KIND.
TINY_VIT = dict(
    image_size=1024,
    hidden_size=192,
    num_hidden_layers=10,
    window_block_indices=[0, 1, 3, 6, 7, 9],
    out_indices=[2, 4, 5, 9],
)
