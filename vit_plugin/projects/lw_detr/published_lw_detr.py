"""LW-DETR in the form of transformers."""

import math
from collections.abc import Sequence

from vit_plugin.arguments.fields import PositiveInt, Section
from vit_plugin.weights.published import Classes, Published, detector_settings, filled, required

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
DECODER = dict(  # our names of what it says of the decoder, and its own
    num_layers='decoder_layers',
    num_heads='decoder_self_attention_heads',
    num_cross_heads='decoder_cross_attention_heads',
    num_points='decoder_n_points',
    feedforward_channels='decoder_ffn_dim',
)
VIT = dict(image_size=256, num_windows=16)


def lw_detr(published: Published) -> tuple[Section, list[str]] | None:
    """The config of an LW-DETR and its classes. None if it is another model.

    Raises:
        ConfigError: if its config lacks what its weights do not show.
    """
    if published.kind != 'lw_detr':
        return None
    config: Section = filled(published.config, DEFAULTS)
    backbone, side = _backbone(published)
    scales = list(required(config, 'projector_scale_factors', Sequence[float]))
    classes = Classes(published.shape('class_embed.weight')[0], published.names)
    model = dict(
        type='SingleStageDetector',
        backbone=backbone,
        neck=dict(
            type='vit_plugin.C2fProjector',
            in_channels=[backbone['arch']['embed_dims']] * len(backbone['out_indices']),
            out_channels=config['d_model'],
            scales=scales,
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
            decoder={ours: config[theirs] for ours, theirs in DECODER.items()},
        ),
        test_cfg=dict(max_per_img=config['num_queries']),
    )
    return detector_settings(model, classes.names, **published.pixels(side)), classes.names


def _backbone(published: Published) -> tuple[Section, int]:
    """The backbone, and the side of its images."""
    vit: Section = filled(published.config.get('backbone_config'), VIT)
    indices = required(vit, 'out_indices', Sequence[PositiveInt])
    windowed = required(vit, 'window_block_indices', Sequence[int])
    backbone = published.vit(vit)
    blocks = range(backbone['arch']['num_layers'])
    backbone |= dict(
        type='vit_plugin.VisionTransformer',
        with_cls_token=False,
        out_type='featmap',
        out_indices=[index - 1 for index in indices],
        pos_embed=dict(interpolate_mode='bicubic_mmpretrain'),
        encoder=dict(
            window=dict(
                number=math.isqrt(vit['num_windows']),
                global_blocks=[i for i in blocks if i not in windowed],
            ),
            qkv_bias='qv',
            layer_scale_init_value=0.1,
            final_norm=False,
        ),
    )
    return backbone, vit['image_size']
