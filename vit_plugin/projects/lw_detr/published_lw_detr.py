"""Read LW-DETR in the format of transformers, as the config of the same model here.

Each field of its ``config.json`` has to be read, required to have a supported value, compared with
the weights, or ignored: :class:`~vit_plugin.weights.foreign_config.ForeignConfig` rejects others.
"""

import math
from collections.abc import Sequence
from typing import Any

from vit_plugin.arguments.fields import Count, Eps, PositiveInt, Section, Size
from vit_plugin.projects.detr_family.published_classes import DetectorClasses, names_of_all_rows
from vit_plugin.weights.foreign_config import ForeignConfig
from vit_plugin.weights.published import Published
from vit_plugin.weights.published_encoder import encoder_section
from vit_plugin.weights.published_settings import detector_settings
from vit_plugin.weights.transformers_config import (
    inner_backbone,
    output_stages,
)

from .lw_detr_kinds import LW_DETR_KIND, LW_DETR_VIT_KIND, TINY_VIT

FIRST_DECODER_LAYER = 'bbox_head.layers.0.'
MAP_SCALES = (0.5, 1.0, 2.0)  # the scales that a C2fProjector has


def read_lw_detr(published: Published) -> tuple[Section, list[str]] | None:
    """The config of an LW-DETR and its classes. None if it is another model.

    Raises:
        ConfigError: if the config contradicts the weights, or describes an unsupported model.
    """
    if published.model_type != 'lw_detr':
        return None
    config = published.described_by(LW_DETR_KIND, 'LwDetrForObjectDetection')
    if config is None:
        return None
    backbone, size = _backbone(published, config)
    scales = [*config.get('projector_scale_factors', Sequence[float])]
    if not {*scales} <= {*MAP_SCALES} or len(scales) != published.count('neck.levels.'):
        levels = published.count('neck.levels.')
        raise config.unsupported(
            'projector_scale_factors', why=f'where {levels} of {MAP_SCALES} are expected'
        )
    rows, dims = published.shape('class_embed.weight')
    classes = DetectorClasses(rows, names_of_all_rows(published, rows))
    decoder, queries = _decoder(published, config, dims, len(scales))
    blocks = published.count('neck.levels.0.c2f.bottlenecks.')
    config.check_agreement(d_model=dims, c2f_num_blocks=blocks, num_feature_levels=len(scales))
    model = dict(
        type='SingleStageDetector',
        backbone=backbone,
        neck=dict(
            type='vit_plugin.C2fProjector',
            in_channels=[backbone['arch']['embed_dims']] * len(backbone['out_indices']),
            out_channels=dims,
            scales=scales,
            num_blocks=blocks,
            norm_cfg=dict(type='BN', eps=config.get('batch_norm_eps', Eps)),
        ),
        bbox_head=dict(
            type='vit_plugin.LWDETRHead',
            num_classes=len(classes.names),
            unused_rows=classes.unused,
            num_levels=len(scales),
            embed_dims=dims,
            decoder=decoder,
            **queries,
        ),
        test_cfg=dict(max_per_img=queries['num_queries']),
    )
    return detector_settings(model, classes.names, **published.pixels(size)), classes.names


def _decoder(
    published: Published, config: ForeignConfig, dims: int, num_levels: int
) -> tuple[Section, Section]:
    """The head's ``decoder``, and its other arguments ``num_queries`` and ``num_groups``."""
    groups = published.count('bbox_head.proposal_fc.')
    queries = published.shape('bbox_head.reference.weight')[0] // max(groups, 1)
    heads, cross_heads = (
        config.get(f'decoder_{name}_attention_heads', PositiveInt) for name in ('self', 'cross')
    )
    for name in ('decoder_self_attention_heads', 'decoder_cross_attention_heads'):
        if dims % config[name]:
            raise config.unsupported(name, why=f'which must divide {dims} channels')
    num_samples = published.shape(f'{FIRST_DECODER_LAYER}cross_attn.attention_weights.weight')[0]
    decoder = dict(
        num_layers=published.count('bbox_head.layers.'),
        num_heads=heads,
        num_cross_heads=cross_heads,
        num_points=num_samples // (cross_heads * num_levels),
        feedforward_channels=published.shape(f'{FIRST_DECODER_LAYER}mlp.0.weight')[0],
    )
    config.check_agreement(
        decoder_layers=decoder['num_layers'],
        decoder_n_points=decoder['num_points'],
        decoder_ffn_dim=decoder['feedforward_channels'],
        num_queries=queries,
        group_detr=groups,
    )
    return decoder, dict(num_queries=queries, num_groups=groups)


def _backbone(published: Published, config: ForeignConfig) -> tuple[Section, Any]:
    """The backbone, and the size of its images."""
    vit = inner_backbone(config, {'lw_detr_vit': LW_DETR_VIT_KIND}, TINY_VIT)
    backbone = encoder_section(published, vit, size_field='pretrain_image_size')
    layers, windows = backbone['arch']['num_layers'], vit.get('num_windows', PositiveInt)
    side = math.isqrt(windows)  # windows along a side
    vit.require('num_windows', side**2)
    vit.check_agreement(num_windows_side=side)
    windowed = vit.get('window_block_indices', Sequence[Count])
    backbone['encoder'] |= dict(
        window=dict(number=side, global_blocks=[i for i in range(layers) if i not in windowed]),
        final_norm=False,
    )
    backbone |= dict(
        type='vit_plugin.VisionTransformer',
        with_cls_token=False,
        out_type='featmap',
        # Each output follows a block, so the index of this block is one less than their number.
        out_indices=[number - 1 for number in output_stages(vit, layers)],
        # Resized as in `LwDetrViTEmbeddings.get_absolute_positions`.
        pos_embed=dict(interpolate_mode='bicubic_mmpretrain'),
    )
    return backbone, vit.get('image_size', Size)
