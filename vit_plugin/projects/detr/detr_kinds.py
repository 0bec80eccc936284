"""The fields of the configs of three DETRs in transformers 5.24, with their defaults.

A reader must touch each field with a default here, see
:class:`~vit_plugin.weights.foreign_config.ConfigKind`. Fields under ``unused`` do not affect
predictions; they are listed by the reason. The source is ``models/*/configuration_*.py`` of
``detr``, ``conditional_detr``, ``deformable_detr`` and ``timm_backbone``.
"""

from vit_plugin.weights.transformers_config import (
    FOR_DROPOUT,
    FOR_INITIALIZATION,
    FOR_LOSSES,
    NAMED_BACKBONE,
    STAGE_FIELDS,
    transformers_kind,
)

_SHARED = dict(
    backbone_config=None,
    **NAMED_BACKBONE,
    use_timm_backbone=True,
    dilation=False,
    num_channels=3,
    encoder_layers=6,
    encoder_ffn_dim=2048,
    encoder_attention_heads=8,
    decoder_layers=6,
    decoder_ffn_dim=2048,
    decoder_attention_heads=8,
    activation_function='relu',
    d_model=256,
    dropout=0.1,
    attention_dropout=0.0,
    position_embedding_type='sine',
)
_UNUSED = {
    'where the weights of the backbone came from': 'use_pretrained_backbone',
    FOR_INITIALIZATION: 'init_std init_xavier_std',
    FOR_DROPOUT: 'encoder_layerdrop decoder_layerdrop activation_dropout classifier_dropout',
    FOR_LOSSES: 'class_cost bbox_cost giou_cost mask_loss_coefficient dice_loss_coefficient '
    'cls_loss_coefficient bbox_loss_coefficient giou_loss_coefficient eos_coefficient focal_alpha',
    'fields that transformers 4.x wrote and no version reads': 'max_position_embeddings '
    'scale_embedding',
}
_ALIASES = dict(
    hidden_size='d_model',
    num_attention_heads='encoder_attention_heads',
    num_hidden_layers='encoder_layers',
)
DETR_KINDS = {
    'detr': transformers_kind(
        dict(_SHARED, num_queries=100, auxiliary_loss=False), unused=_UNUSED, aliases=_ALIASES
    ),
    'conditional_detr': transformers_kind(
        dict(_SHARED, num_queries=300, auxiliary_loss=False), unused=_UNUSED, aliases=_ALIASES
    ),
    'deformable_detr': transformers_kind(
        dict(
            _SHARED,
            encoder_ffn_dim=1024,
            decoder_ffn_dim=1024,
            num_queries=300,
            num_feature_levels=4,
            encoder_n_points=4,
            decoder_n_points=4,
            two_stage=False,
            two_stage_num_proposals=300,
            with_box_refine=False,
            tie_word_embeddings=True,  # whether all layers share one head
        ),
        unused={
            **_UNUSED,
            'more outputs, and how a GPU computes the same': 'auxiliary_loss return_intermediate '
            'disable_custom_kernels',
        },
        aliases=_ALIASES,
    ),
}
TIMM_BACKBONE_KIND = transformers_kind(
    dict(
        backbone=None,
        num_channels=3,
        features_only=True,
        output_stride=None,
        **STAGE_FIELDS,
    ),
    unused={
        'where its weights came from': 'use_pretrained_backbone use_timm_backbone',
        'what DETR does with all norms': 'freeze_batch_norm_2d',
    },
)
