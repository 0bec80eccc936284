"""The fields of the configs of DPT and Depth Anything in transformers 5.24, with their defaults.

A reader must touch each field with a default here, see
:class:`~vit_plugin.weights.foreign_config.ConfigKind`. Fields under ``unused`` do not affect
predictions; they are listed by the reason. The source is ``models/*/configuration_*.py`` of
``dpt``, ``depth_anything`` and ``bit``.
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

DPT_KIND = transformers_kind(
    dict(
        hidden_size=768,
        num_hidden_layers=12,
        num_attention_heads=12,
        intermediate_size=3072,
        hidden_act='gelu',
        layer_norm_eps=1e-12,
        image_size=384,
        patch_size=16,
        num_channels=3,
        is_hybrid=False,
        qkv_bias=True,
        backbone_out_indices=(2, 5, 8, 11),
        readout_type='project',
        reassemble_factors=(4, 2, 1, 0.5),
        neck_hidden_sizes=(96, 192, 384, 768),
        neck_ignore_stages=(0, 1),
        fusion_hidden_size=256,
        head_in_index=-1,
        use_batch_norm_in_fusion_residual=False,
        use_bias_in_fusion_residual=None,
        add_projection=False,
        backbone_config=None,
        **NAMED_BACKBONE,
    ),
    unused={
        **BACKBONE_UNUSED,
        FOR_INITIALIZATION: 'initializer_range',
        'a shape that the weights show': 'backbone_featmap_shape',
        FOR_DROPOUT: 'hidden_dropout_prob attention_probs_dropout_prob',
        FOR_LOSSES: 'auxiliary_loss_weight semantic_loss_ignore_index',
        'segmentation and pooling heads, which depth models lack': 'semantic_classifier_dropout '
        'use_auxiliary_head pooler_output_size pooler_act',
        'fields that transformers 4.18 wrote and no version reads': 'channels expand_channels '
        'in_index out_indices post_process_channels',
    },
)
# BiT is a ResNet with normalized weights, the CNN of DPT-Hybrid.
BIT_KIND = transformers_kind(
    dict(
        num_channels=3,
        embedding_size=64,
        hidden_sizes=(256, 512, 1024, 2048),
        depths=(3, 4, 6, 3),
        layer_type='preactivation',
        hidden_act='relu',
        global_padding=None,
        num_groups=32,
        embedding_dynamic_padding=False,
        output_stride=32,
        width_factor=1,
        **STAGE_FIELDS,
    ),
    unused={FOR_DROPOUT: 'drop_path_rate'},
)
# Fields in which DPT's default backbone differs from BIT_KIND.
DPT_BIT = dict(
    global_padding='same',
    layer_type='bottleneck',
    depths=[3, 4, 9],
    out_features=['stage1', 'stage2', 'stage3'],
    embedding_dynamic_padding=True,
)
DEPTH_ANYTHING_KIND = transformers_kind(
    dict(
        patch_size=14,
        reassemble_hidden_size=384,
        reassemble_factors=(4, 2, 1, 0.5),
        neck_hidden_sizes=(48, 96, 192, 384),
        fusion_hidden_size=64,
        head_in_index=-1,
        head_hidden_size=32,
        depth_estimation_type='relative',
        max_depth=1,
        backbone_config=None,
        **NAMED_BACKBONE,
    ),
    unused={**BACKBONE_UNUSED, FOR_INITIALIZATION: 'initializer_range'},
)
# Fields in which Depth Anything's default backbone differs from ENCODER_KINDS['dinov2'].
DEPTH_ANYTHING_DINOV2 = dict(
    image_size=518,
    hidden_size=384,
    num_attention_heads=6,
    out_indices=[9, 10, 11, 12],
    reshape_hidden_states=False,
)
