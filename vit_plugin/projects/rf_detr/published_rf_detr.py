"""The models that Roboflow publishes, in its own files and in those of transformers."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from timm.data import IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD

from vit_plugin.arguments.fields import PositiveInt, Size
from vit_plugin.errors import ConfigError
from vit_plugin.weights.published import Classes, Published, detector_settings

PREFIX = 'backbone.0.'
EMBEDDINGS = f'{PREFIX}encoder.encoder.embeddings.'
TABLE = f'{EMBEDDINGS}position_embeddings'
BLOCKS = f'{PREFIX}encoder.encoder.encoder.layer.'
LAYERS = 'transformer.decoder.layers.'
HEAD_DIMS, SELF_DIMS, CROSS_DIMS = 64, 32, 16  # channels of a head: DINOv2's, and the decoder's
UNSUPPORTED = {  # keys of models that are more than boxes, and what they are
    f'{EMBEDDINGS}register_tokens': 'its backbone has registers, of which windows have none',
    'keypoint_head.': 'it predicts keypoints, which no model here does',
    f'{PREFIX}cross_attn_projector.': 'it has a second projector, which no model here has',
    f'{PREFIX}encoder.base_model.': 'its LoRA adapters are not merged',
}


class Trunk(NamedTuple):
    """What shapes do not tell of a published backbone.

    Attributes:
        stages: outputs after so many blocks. A block of such a number is global, too.
        windows: windows along a side.
        resolution: side of the images in pixels; None is that of the position table.
    """

    stages: tuple[int, ...] = (3, 6, 9, 12)
    windows: int = 2
    resolution: int | None = None


# By the patch size, and the side of the position table in patches.
TRUNKS = {
    (14, 37): Trunk((2, 5, 8, 11), 4, 560),  # Base, and Large of 2025
    (12, 26): Trunk(windows=1),  # Seg Nano
    (20, 35): Trunk(windows=1),  # XL
}


def rf_detr(published: Published) -> tuple[dict[str, Any], list[str]] | None:
    """The config of an RF-DETR and its classes. None if it is another model.

    Raises:
        ConfigError: if it is one that cannot be built here, or a file that is damaged.
    """
    if TABLE not in published.weights or published.kind not in ('', 'rf_detr'):
        return None
    for key, why in UNSUPPORTED.items():
        if any(name.startswith(key) for name in published.weights):
            raise ConfigError(f'{why}; give another model')
    dims = published.shape('class_embed.weight')[-1]
    classes = Classes(published.shape('class_embed.weight')[0], published.names)
    backbone, size = _backbone(published)
    groups = published.count('transformer.enc_output.')
    queries = published.shape('refpoint_embed.weight')[0] // max(groups, 1)
    scales, levels = _scales(published)
    heads = published.setting(PositiveInt, 'sa_nheads', dims // SELF_DIMS)
    cross = published.setting(PositiveInt, 'ca_nheads', dims // CROSS_DIMS)
    points = published.shape(f'{LAYERS}0.cross_attn.attention_weights.weight')[0]
    most = published.setting(PositiveInt, 'num_select', queries)
    model: dict[str, Any] = dict(
        type='SingleStageDetector',
        backbone=backbone,
        neck=dict(
            type='vit_plugin.C2fProjector',
            in_channels=[backbone['arch']['embed_dims']] * len(backbone['out_indices']),
            out_channels=dims,
            scales=scales,
            num_blocks=published.count(f'{PREFIX}projector.stages.0.0.m.'),
            norm_cfg=dict(type='LN2d', eps=published.config.get('layer_norm_eps', 1e-6)),
            widest=None,
        ),
        bbox_head=dict(
            type='vit_plugin.LWDETRHead',
            num_classes=len(classes.names),
            unused_rows=classes.unused,
            num_queries=queries,
            num_groups=groups,
            num_levels=levels,
            embed_dims=dims,
            decoder=dict(
                num_layers=published.count(LAYERS),
                num_heads=published.config.get('decoder_self_attention_heads', heads),
                num_cross_heads=published.config.get('decoder_cross_attention_heads', cross),
                num_points=points
                // published.config.get('decoder_cross_attention_heads', cross)
                // levels,
                feedforward_channels=published.shape(f'{LAYERS}0.linear1.weight')[0],
            ),
        ),
        test_cfg=dict(max_per_img=most),
    )
    pixels = published.processor
    settings = detector_settings(
        model,
        size,
        classes.names,
        pixels.get('image_mean', IMAGENET_DEFAULT_MEAN),
        pixels.get('image_std', IMAGENET_DEFAULT_STD),
    )
    return settings, classes.names


def _backbone(published: Published) -> tuple[dict[str, Any], tuple[int, int]]:
    """The backbone, and the width and height of its images."""
    width, _, patch, _ = published.shape(f'{EMBEDDINGS}patch_embeddings.projection.weight')
    side, blocks = math.isqrt(published.shape(TABLE)[1] - 1), published.count(BLOCKS)
    trunk = TRUNKS.get((patch, side), Trunk())
    told: Mapping[str, Any] = published.config.get('backbone_config') or {}
    stages = told.get('out_indices') or published.setting(
        Sequence[int], 'out_feature_indexes', trunk.stages
    )
    windows = told.get('num_windows') or published.setting(
        PositiveInt, 'num_windows', trunk.windows
    )
    resolution = published.setting(PositiveInt, 'resolution', trunk.resolution or side * patch)
    size = published.processor.get('size') or {}
    height, wide = (size.get(name, resolution) for name in ('height', 'width'))
    backbone = dict(
        type='vit_plugin.WindowedViT',
        arch=dict(
            embed_dims=width,
            num_layers=blocks,
            num_heads=told.get('num_attention_heads', width // HEAD_DIMS),
            feedforward_channels=published.shape(f'{BLOCKS}0.mlp.fc1.weight')[0],
            patch_size=patch,
        ),
        img_size=side * patch,
        numerics='timm',
        out_indices=[stage - 1 for stage in stages],
        pos_embed=dict(type='learned', interpolate_mode='bicubic'),
        encoder=dict(
            window=dict(
                number=windows, global_blocks=[stage for stage in stages if stage < blocks]
            ),
            layer_scale_init_value=1.0,
        ),
    )
    return backbone, (wide, height)


def _scales(published: Published) -> tuple[list[float], int]:
    """The sizes of the projector's outputs over that of its inputs, and their number."""
    levels = published.count(f'{PREFIX}projector.stages.')
    start = f'{PREFIX}projector.stages_sampling.'
    scales = [
        2
        if f'{start}{i}.0.0.weight' in published.weights
        else 0.5
        if f'{start}{i}.0.0.conv.weight' in published.weights
        else 1
        for i in range(levels)
    ]
    return scales, levels
