"""EoMT in the form of transformers: semantic, instance and panoptic masks."""

import math

from vit_plugin.arguments.fields import Section
from vit_plugin.errors import ConfigError
from vit_plugin.weights.published import (
    Classes,
    Published,
    detector_settings,
    filled,
    segmentor_settings,
)

from .eomt_model import instances

KINDS = ('eomt', 'eomt_dinov3')
HEAD_DIMS = 64  # channels of a head of DINOv2 and DINOv3
DEFAULTS = dict(image_size=640, layer_norm_eps=1e-6, num_attention_heads=0)
SCENES = (133, 80)  # COCO's panoptic classes, and how many of them are things
ROTARY = dict(form='centred', order='yx', planes='halves', temperature=100.0)


def eomt(published: Published) -> tuple[Section, list[str]] | None:
    """The config of an EoMT and its classes. None if it is another model.

    Its preprocessor says which masks it is for: it cuts images into squares for semantic masks, and
    pads them for the others.

    Raises:
        ConfigError: if it is one that cannot be built here.
    """
    if published.kind not in KINDS:
        return None
    rows = published.shape('class_predictor.weight')[0] - 1  # the last is no object
    names = published.names
    classes = (
        [names.get(i, f'class {i}') for i in range(rows)] if names else Classes(rows, {}).names
    )
    backbone, side = _backbone(published, rows)
    if published.processor.get('do_split_image'):
        model: Section = dict(
            type='EncoderDecoder',
            backbone=backbone,
            decode_head=dict(type='vit_plugin.EoMTDecodeHead', num_classes=rows),
            test_cfg=dict(mode='slide', crop_size=(side, side), stride=(2 * side // 3,) * 2),
        )
        pixels = published.pixels(side)
        return segmentor_settings(model, classes, **pixels), classes
    if rows > SCENES[1] and rows != SCENES[0]:
        raise ConfigError(
            f'its config does not say which of its {rows} classes are things; give one with '
            "COCO's classes, or one for semantic masks"
        )
    things = SCENES[1] if rows == SCENES[0] else rows
    model, pixels = instances(backbone, things, rows - things), published.pixels(side)
    return detector_settings(model, classes, padded=side, masks=things == rows, **pixels), classes


def _backbone(published: Published, rows: int) -> tuple[Section, int]:
    """The backbone with its queries, and the side of its images."""
    config = filled(published.config, DEFAULTS)
    is_v3, side = published.kind == KINDS[1], config['image_size']
    width = published.shape('embeddings.cls_token')[-1]
    start = 'embeddings.patch_embeddings.'
    kernel = published.shape(f'{start}weight' if is_v3 else f'{start}projection.weight')
    first = next(
        (
            name
            for part in ('fc1', 'up_proj')
            if (name := f'layers.0.mlp.{part}.weight') in published.weights
        ),
        '',
    )
    if not first or 'layers.0.mlp.gate_proj.weight' in published.weights:
        raise ConfigError('its MLPs have gates, as those of the largest models; give a smaller one')
    backbone = dict(
        type='vit_plugin.EoMT',
        num_classes=rows,
        num_queries=published.shape('query.weight')[0],
        num_blocks=published.shape('attn_mask_probs')[0],
        arch=dict(
            embed_dims=width,
            num_layers=published.count('layers.'),
            num_heads=config['num_attention_heads'] or width // HEAD_DIMS,
            feedforward_channels=published.shape(first)[0],
            patch_size=kernel[-1],
        ),
        img_size=side if is_v3 else _side_of_table(published) * kernel[-1],
        numerics=dict(
            act_cfg=dict(approximate='none'), norm_cfg=dict(eps=config['layer_norm_eps'])
        ),
        encoder=dict(
            reg_token=published.shape('embeddings.register_tokens')[1],
            layer_scale_init_value=1.0,
            qkv_bias='qv' if is_v3 else True,
        ),
        pos_embed=dict(type='none', rotary=ROTARY) if is_v3 else dict(prefix_rows=False),
    )
    return backbone, side


def _side_of_table(published: Published) -> int:
    return math.isqrt(published.shape('embeddings.position_embeddings.weight')[0])
