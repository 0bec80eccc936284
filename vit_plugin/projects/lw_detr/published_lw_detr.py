"""LW-DETR in the form of transformers."""

import math
from collections.abc import Sequence

from vit_plugin.arguments.fields import PositiveInts, Section
from vit_plugin.weights.published import Classes, Published, detector_settings, filled, required

# What its config says of the decoder, by our names. The defaults are the same.
DECODER = dict(
    num_layers='decoder_layers',
    num_heads='decoder_self_attention_heads',
    num_cross_heads='decoder_cross_attention_heads',
    num_points='decoder_n_points',
    feedforward_channels='decoder_ffn_dim',
)


def lw_detr(published: Published) -> tuple[Section, list[str]] | None:
    """The config of an LW-DETR and its classes. None if it is another model.

    Raises:
        ConfigError: if its config lacks what its weights do not show.
    """
    if published.kind != 'lw_detr':
        return None
    config = filled(published.config, dict(batch_norm_eps=1e-5, num_queries=300))
    backbone, side = _backbone(published)
    scales = required(config, 'projector_scale_factors', Sequence[float])
    rows, dims = published.shape('class_embed.weight')
    classes = Classes(rows, published.names)
    model = dict(
        type='SingleStageDetector',
        backbone=backbone,
        neck=dict(
            type='vit_plugin.C2fProjector',
            in_channels=[backbone['arch']['embed_dims']] * len(backbone['out_indices']),
            out_channels=dims,
            scales=scales,
            num_blocks=published.count('neck.levels.0.c2f.bottlenecks.'),
            norm_cfg=dict(type='BN', eps=config['batch_norm_eps']),
        ),
        bbox_head=dict(
            type='vit_plugin.LWDETRHead',
            num_classes=len(classes.names),
            unused_rows=classes.unused,
            num_queries=config['num_queries'],
            num_groups=published.count('bbox_head.proposal_fc.'),
            num_levels=len(scales),
            embed_dims=dims,
            decoder={ours: config[theirs] for ours, theirs in DECODER.items() if theirs in config},
        ),
        test_cfg=dict(max_per_img=config['num_queries']),
    )
    return detector_settings(model, classes.names, **published.pixels(side)), classes.names


def _backbone(published: Published) -> tuple[Section, int]:
    """The backbone, and the side of its images."""
    vit = filled(published.config.get('backbone_config'), dict(image_size=256, num_windows=16))
    windowed = required(vit, 'window_block_indices', Sequence[int])
    backbone = published.vit(vit)
    backbone |= dict(
        type='vit_plugin.VisionTransformer',
        with_cls_token=False,
        out_type='featmap',
        out_indices=[index - 1 for index in required(vit, 'out_indices', PositiveInts)],
        pos_embed=dict(interpolate_mode='bicubic_mmpretrain'),
        encoder=dict(
            window=dict(
                number=math.isqrt(vit['num_windows']),
                global_blocks=[
                    i for i in range(backbone['arch']['num_layers']) if i not in windowed
                ],
            ),
            qkv_bias='qv',
            layer_scale_init_value=0.1,
            final_norm=False,
        ),
    )
    return backbone, vit['image_size']
