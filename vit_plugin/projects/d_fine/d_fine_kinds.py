"""The fields of the configs of D-FINE, DEIMv2 and RT-DETR in transformers 5.24, and their defaults.

A reader must touch each field with a default here, see
:class:`~vit_plugin.weights.foreign_config.ConfigKind`. Fields under ``unused`` do not affect
predictions; they are listed by the reason. The source is ``models/*/configuration_*.py`` of
``d_fine``, ``deimv2``, ``hgnet_v2``, ``rt_detr`` and ``rt_detr_v2``.
"""

from typing import Any

from vit_plugin.weights.transformers_config import (
    BACKBONE_UNUSED,
    FOR_DROPOUT,
    FOR_INITIALIZATION,
    FOR_LOSSES,
    NAMED_BACKBONE,
    STAGE_FIELDS,
    transformers_kind,
)

# Fields of D-FINE, most of which the other models have, too.
_SHARED: dict[str, Any] = dict(
    layer_norm_eps=1e-5,
    batch_norm_eps=1e-5,
    backbone_config=None,
    freeze_backbone_batch_norms=True,
    encoder_hidden_dim=256,
    encoder_in_channels=(512, 1024, 2048),
    encoder_layers=1,
    encoder_ffn_dim=1024,
    encoder_attention_heads=8,
    encode_proj_layers=(2,),
    positional_encoding_temperature=10000,
    encoder_activation_function='gelu',
    activation_function='silu',
    eval_size=None,
    normalize_before=False,
    hidden_expansion=1.0,
    d_model=256,
    num_queries=300,
    decoder_in_channels=(256, 256, 256),
    decoder_ffn_dim=1024,
    num_feature_levels=3,
    decoder_n_points=4,
    decoder_layers=6,
    decoder_attention_heads=8,
    decoder_activation_function='relu',
    num_denoising=100,
    label_noise_ratio=0.5,
    box_noise_scale=1.0,
    learn_initial_query=False,
    eval_idx=-1,
    layer_scale=1.0,
    max_num_bins=32,
    reg_scale=4.0,
    depth_mult=1.0,
    top_prob_values=4,
    lqe_hidden_dim=64,
    lqe_layers=2,
    decoder_offset_scale=0.5,
    decoder_method='default',
    up=0.5,
    tie_word_embeddings=True,  # whether files may lack class_embed, next to decoder.class_embed
    head_dim=None,  # derived from the width and the heads
    **NAMED_BACKBONE,
)
_UNUSED = {
    **BACKBONE_UNUSED,
    FOR_INITIALIZATION: 'initializer_range initializer_bias_prior_prob',
    FOR_DROPOUT: 'dropout activation_dropout attention_dropout',
    FOR_LOSSES: 'matcher_alpha matcher_gamma matcher_class_cost matcher_bbox_cost '
    'matcher_giou_cost use_focal_loss auxiliary_loss focal_loss_alpha focal_loss_gamma '
    'weight_loss_vfl weight_loss_bbox weight_loss_giou weight_loss_fgl weight_loss_ddf '
    'eos_coefficient weight_loss_mal use_dense_one_to_one mal_alpha',
    'a table of anchors for images of one size': 'anchor_image_size',
    'what no code reads, or what follows from the maps': 'feat_strides with_box_refine',
}
_ALIASES = dict(hidden_size='d_model', num_attention_heads='encoder_attention_heads')
D_FINE_KIND = transformers_kind(_SHARED, unused=_UNUSED, aliases=_ALIASES)
_NOT_IN_RT_DETR = {
    *('eval_idx', 'layer_scale', 'max_num_bins', 'reg_scale', 'depth_mult', 'top_prob_values'),
    *('lqe_hidden_dim', 'lqe_layers', 'decoder_offset_scale', 'decoder_method', 'up', 'head_dim'),
}
_RT_DETR = {name: value for name, value in _SHARED.items() if name not in _NOT_IN_RT_DETR}
_UNUSED_BY_RT_DETR = {**_UNUSED, 'kernels of GPUs': 'disable_custom_kernels'}
RT_DETR_KIND = transformers_kind(_RT_DETR, unused=_UNUSED_BY_RT_DETR, aliases=_ALIASES)
RT_DETR_V2_KIND = transformers_kind(
    dict(_RT_DETR, decoder_n_levels=3, decoder_offset_scale=0.5, decoder_method='default'),
    unused=_UNUSED_BY_RT_DETR,
    aliases=_ALIASES,
)
RESNET_D_KIND = transformers_kind(
    dict(
        num_channels=3,
        embedding_size=64,
        hidden_sizes=(256, 512, 1024, 2048),
        depths=(3, 4, 6, 3),
        layer_type='bottleneck',
        hidden_act='relu',
        downsample_in_first_stage=False,
        downsample_in_bottleneck=False,
        **STAGE_FIELDS,
    ),
    unused={FOR_INITIALIZATION: 'initializer_range'},
)
# The default `backbone_config`: what differs from RESNET_D_KIND.
RESNET_D50 = dict(model_type='rt_detr_resnet', out_indices=[2, 3, 4])
DEIMV2_KIND = transformers_kind(
    dict(
        _SHARED,
        encoder_fuse_op='sum',
        spatial_tuning_adapter_inplanes=16,
        encoder_type='hybrid',
        use_gateway=True,
        share_bbox_head=False,
        encoder_has_trailing_conv=True,
    ),
    unused=_UNUSED,
    aliases=_ALIASES,
)
HGNET_V2_KIND = transformers_kind(
    dict(
        num_channels=3,
        depths=(3, 4, 6, 3),
        hidden_sizes=(256, 512, 1024, 2048),
        hidden_act='relu',
        stem_channels=(3, 32, 48),
        stem_strides=(2, 1, 1, 2, 1),
        stage_in_channels=(48, 128, 512, 1024),
        stage_mid_channels=(48, 96, 192, 384),
        stage_out_channels=(128, 512, 1024, 2048),
        stage_num_blocks=(1, 1, 3, 1),
        stage_downsample=(False, True, True, True),
        stage_downsample_strides=(2, 2, 2, 2),
        stage_light_block=(False, False, True, True),
        stage_kernel_size=(3, 3, 5, 5),
        stage_numb_of_layers=(6, 6, 6, 6),
        use_learnable_affine_block=False,
        **STAGE_FIELDS,
    ),
    unused={FOR_INITIALIZATION: 'initializer_range', 'of a classifier alone': 'embedding_size'},
)
# The default `backbone_config`: what differs from HGNET_V2_KIND.
HGNET_L = dict(model_type='hgnet_v2', out_indices=[2, 3, 4])
