"""LW-DETR in the form of transformers."""

import math
from collections.abc import Sequence

from vit_plugin.arguments.fields import PositiveInt, Section
from vit_plugin.weights.published import (
    Classes,
    Published,
    detector_settings,
    filled,
    required,
)

# Of the config, what it says where it does not differ from transformers' own.
DEFAULTS = dict(
    batch_norm_eps=1e-5,
    c2f_num_blocks=3,
    d_model=256,
    decoder_cross_attention_heads=16,
    decoder_ffn_dim=2048,
    decoder_layers=3,
    decoder_n_points=4,
    decoder_self_attention_heads=8,
    group_detr=13,
    num_queries=300,
)
VIT = dict(
    hidden_size=768,
    image_size=256,
    mlp_ratio=4,
    num_attention_heads=12,
    num_hidden_layers=12,
    num_windows=16,
    patch_size=16,
    pretrain_image_size=224,
)


def lw_detr(published: Published) -> tuple[Section, list[str]] | None:
    """The config of an LW-DETR and its classes. None if it is another model.

    Raises:
        ConfigError: if its config lacks what its weights do not show.
    """
    if published.kind != 'lw_detr':
        return None
    config: Section = filled(published.config, DEFAULTS)
    vit: Section = filled(published.config.get('backbone_config'), VIT)
    blocks, width = vit['num_hidden_layers'], vit['hidden_size']
    indices, windowed, scales = (
        required(source, name, kind)
        for source, name, kind in (
            (vit, 'out_indices', Sequence[PositiveInt]),
            (vit, 'window_block_indices', Sequence[int]),
            (config, 'projector_scale_factors', Sequence[float]),
        )
    )
    classes = Classes(published.shape('class_embed.weight')[0], published.names)
    model = dict(
        type='SingleStageDetector',
        backbone=dict(
            type='vit_plugin.VisionTransformer',
            arch=dict(
                embed_dims=width,
                num_layers=blocks,
                num_heads=vit['num_attention_heads'],
                feedforward_channels=vit['mlp_ratio'] * width,
                patch_size=vit['patch_size'],
            ),
            img_size=vit['pretrain_image_size'],
            numerics='timm',
            with_cls_token=False,
            out_type='featmap',
            out_indices=[index - 1 for index in indices],
            pos_embed=dict(interpolate_mode='bicubic_mmpretrain'),
            encoder=dict(
                window=dict(
                    number=math.isqrt(vit['num_windows']),
                    global_blocks=[i for i in range(blocks) if i not in windowed],
                ),
                qkv_bias='qv',
                layer_scale_init_value=0.1,
                final_norm=False,
            ),
        ),
        neck=dict(
            type='vit_plugin.C2fProjector',
            in_channels=[width] * len(indices),
            out_channels=config['d_model'],
            scales=list(scales),
            num_blocks=config['c2f_num_blocks'],
            norm_cfg=dict(type='BN', eps=config['batch_norm_eps']),
        ),
        bbox_head=dict(
            type='vit_plugin.LWDETRHead',
            num_classes=len(classes.names),
            unused_rows=classes.unused,
            num_queries=config['num_queries'],
            num_groups=config['group_detr'],
            num_levels=len(scales),
            embed_dims=config['d_model'],
            decoder=dict(
                num_layers=config['decoder_layers'],
                num_heads=config['decoder_self_attention_heads'],
                num_cross_heads=config['decoder_cross_attention_heads'],
                num_points=config['decoder_n_points'],
                feedforward_channels=config['decoder_ffn_dim'],
            ),
        ),
        test_cfg=dict(max_per_img=config['num_queries']),
    )
    pixels = published.pixels(vit['image_size'])
    return detector_settings(model, classes.names, **pixels), classes.names
