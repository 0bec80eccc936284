"""The fields of RF-DETR's configs, in transformers and in Roboflow's own files.

They are those of ``configuration_rf_detr.py`` of transformers 5.24, and of ``config.py`` and
``models/_defaults.py`` of ``rfdetr`` 1.11.

A ``ConfigKind`` has every field of a config class: those that affect predictions with their
defaults, and the others by the reason why they do not. A field in neither is an error.
"""

from vit_plugin.weights.foreign_config import ConfigKind
from vit_plugin.weights.transformers_config import (
    BACKBONE_UNUSED,
    FOR_DROPOUT,
    FOR_INITIALIZATION,
    FOR_LOSSES,
    FOR_MASKING,
    NAMED_BACKBONE,
    STAGE_FIELDS,
    transformers_kind,
)

RF_DETR_KIND = transformers_kind(
    dict(
        backbone_config=None,
        hidden_expansion=0.5,
        c2f_num_blocks=3,
        activation_function='silu',
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
        layer_norm_eps=1e-5,
        num_feature_levels=1,
        mask_downsample_ratio=4,
        segmentation_head_activation_function='gelu',
        intermediate_size=1024,
        **NAMED_BACKBONE,
    ),
    unused={
        **BACKBONE_UNUSED,
        FOR_INITIALIZATION: 'init_std',
        FOR_DROPOUT: 'dropout attention_dropout activation_dropout',
        FOR_LOSSES: 'class_cost bbox_cost giou_cost class_loss_coefficient dice_loss_coefficient '
        'bbox_loss_coefficient giou_loss_coefficient eos_coefficient focal_alpha auxiliary_loss '
        'mask_loss_coefficient mask_point_sample_ratio mask_class_loss_coefficient '
        'mask_dice_loss_coefficient',
        'how a GPU computes the same': 'disable_custom_kernels',
    },
)
WINDOWED_DINOV2_KIND = transformers_kind(
    dict(
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
        num_register_tokens=0,
        num_windows=4,  # along a side
        window_block_indexes=None,  # default: all blocks without an output
        apply_layernorm=True,
        reshape_hidden_states=True,
        **STAGE_FIELDS,
    ),
    unused={
        FOR_INITIALIZATION: 'initializer_range layerscale_value',
        FOR_DROPOUT: 'hidden_dropout_prob attention_probs_dropout_prob drop_path_rate',
        FOR_MASKING: 'use_mask_token',
    },
)
# The default `backbone_config` of transformers: fields with other values than in
# WINDOWED_DINOV2_KIND.
SMALL_DINOV2 = dict(
    num_attention_heads=6,
    out_features=['stage2', 'stage5', 'stage8', 'stage11'],
    hidden_size=384,
    num_register_tokens=0,
    image_size=518,
)
# Settings in a file of `rfdetr`. None: inferred from the weights, see `TRUNKS` in
# roboflow_settings.py. All others only have the value with which models here compute.
ROBOFLOW_KIND = ConfigKind(
    defaults=dict(
        encoder=None,
        out_feature_indexes=None,
        dec_layers=None,
        two_stage=True,
        projector_scale=None,
        hidden_dim=None,
        patch_size=None,
        num_windows=None,
        sa_nheads=None,
        ca_nheads=None,
        dec_n_points=None,
        num_queries=None,
        num_select=None,
        bbox_reparam=True,
        lite_refpoint_refine=True,
        layer_norm=True,
        rms_norm=False,
        decoder_norm='LN',
        dim_feedforward=None,
        num_channels=3,
        resolution=None,
        group_detr=None,
        positional_encoding_size=None,
        window_block_indexes=None,
        segmentation_head=None,
        mask_downsample_ratio=4,
        use_grouppose_keypoints=False,
        dual_projector=False,
        num_decoder_registers=0,
        backbone_lora=False,
    ),
    unused={
        'names and licenses': 'model_name license pretrain_weights',
        'the number of classes, which the weights show': 'num_classes',
        'how it is trained, and on which device': 'amp device compile cuda_graphs fused_optimizer '
        'gradient_checkpointing freeze_encoder ia_bce_loss cls_loss_coef',
        'keypoints, which it only has with use_grouppose_keypoints': 'keypoint_cross_attn '
        'inter_instance_kp_attn grouppose_keypoint_dim_downscale dual_projector_kp_only '
        'num_keypoints_per_class postprocess_trace_alpha',
    },
)
