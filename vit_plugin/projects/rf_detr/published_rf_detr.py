"""Roboflow's published models, in its own format and in that of transformers."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from vit_plugin.arguments.fields import Count, Eps, PositiveInt, Section
from vit_plugin.errors import ConfigError
from vit_plugin.projects.detr_family.published_classes import DetectorClasses, stated_names
from vit_plugin.weights.foreign_config import ForeignConfig
from vit_plugin.weights.published import Published
from vit_plugin.weights.published_encoder import encoder_section
from vit_plugin.weights.published_settings import detector_settings
from vit_plugin.weights.transformers_config import (
    blocks_before_outputs,
    inner_backbone,
)

from .rf_detr_kinds import RF_DETR_KIND, ROBOFLOW_KIND, SMALL_DINOV2, WINDOWED_DINOV2_KIND

BACKBONE_PREFIX = 'backbone.0.'
EMBEDDINGS = f'{BACKBONE_PREFIX}encoder.encoder.embeddings.'
POSITION_TABLE = f'{EMBEDDINGS}position_embeddings'
DECODER_LAYERS = 'transformer.decoder.layers.'
SELF_DIMS, CROSS_DIMS = 32, 16  # channels per head of self- and cross-attention in the decoder
MASK_BIAS = 'segmentation_head.bias'
MASK_MLP = 'segmentation_head.query_features_block.layers.0.weight'
UNSUPPORTED = {  # prefixes of keys in unsupported models -> the reason
    f'{EMBEDDINGS}register_tokens': 'its backbone has registers, which no window here has',
    'keypoint_': 'it predicts keypoints, which no model here does',
    f'{BACKBONE_PREFIX}cross_attn_projector.': 'it has a second projector, which no model here has',
    f'{BACKBONE_PREFIX}encoder.base_model.': 'its LoRA adapters are not merged',
}
ROBOFLOW_SCALES = {'P3': 2, 'P4': 1, 'P5': 0.5}  # Roboflow's names of the map scales
ROBOFLOW_ENCODERS = (None, 'dinov2_windowed_small', 'dinov2_windowed_base')


class Trunk(NamedTuple):
    """Settings of a published backbone that its shapes do not show.

    Attributes:
        stages: numbers of blocks after which there is an output; these blocks also have global
            attention.
        windows: windows along a side.
        resolution: image side in pixels; None: that of the position table.
    """

    stages: Sequence[int] = (3, 6, 9, 12)
    windows: int = 2
    resolution: int | None = None


# (patch size, side of the position table in patches) -> backbone.
TRUNKS = {
    (14, 37): Trunk((2, 5, 8, 11), 4, 560),  # Base, and Large of 2025
    (12, 26): Trunk(windows=1),  # Seg Nano
    (20, 35): Trunk(windows=1),  # XL
}


def rf_detr(published: Published) -> tuple[Section, list[str]] | None:
    """The config of an RF-DETR and its classes. None if it is another model.

    Raises:
        ConfigError: if the model is not supported, or if the file is damaged.
    """
    if POSITION_TABLE not in published.weights or published.kind not in ('', 'rf_detr'):
        return None
    for start, why in UNSUPPORTED.items():
        if any(name.startswith(start) for name in published.weights):
            raise ConfigError(f'{why}; give another model')
    rows, dims = published.shape('class_embed.weight')
    classes = DetectorClasses(rows, stated_names(published))
    groups = published.count('transformer.enc_output.')
    queries = published.shape('refpoint_embed.weight')[0] // max(groups, 1)
    blocks = published.count(f'{BACKBONE_PREFIX}projector.stages.0.0.m.')
    scales = _scales(published)
    masks = MASK_BIAS in published.weights
    config = _own_settings(published)
    if published.kind:
        name = f'RfDetrFor{"InstanceSegmentation" if masks else "ObjectDetection"}'
        config = published.described_by(RF_DETR_KIND, name)
    if config is None:
        return None
    read = _of_transformers if published.kind else _of_roboflow
    backbone, side, decoder, eps = read(published, config, dims, len(scales))
    config.agree(
        d_model=dims,
        hidden_dim=dims,
        num_queries=queries,
        group_detr=groups,
        c2f_num_blocks=blocks,
        num_feature_levels=len(scales),
    )
    most = queries if published.kind else config.get('num_select', PositiveInt | None) or queries
    model: Section = dict(
        type='SingleStageDetector',
        backbone=backbone,
        neck=dict(
            type='vit_plugin.C2fProjector',
            in_channels=[backbone['arch']['embed_dims']] * len(backbone['out_indices']),
            out_channels=dims,
            scales=scales,
            num_blocks=blocks,
            norm_cfg=dict(type='LN2d', eps=eps),
            widest=None,
        ),
        bbox_head=dict(
            type='vit_plugin.LWDETRHead',
            num_classes=len(classes.names),
            unused_rows=classes.unused,
            empty_proposals=not published.kind,  # transformers' code has none
            num_levels=len(scales),
            embed_dims=dims,
            decoder=decoder,
            num_groups=groups,
            num_queries=queries,
        ),
        test_cfg=dict(max_per_img=most),
    )
    if masks:
        hidden = published.shape(MASK_MLP)[0]
        config.agree(intermediate_size=hidden)
        if hidden != 4 * dims:
            raise config.refuse('intermediate_size', why=f'where {4 * dims} are computed here')
        scale = backbone['arch']['patch_size'] / config.get('mask_downsample_ratio', PositiveInt)
        model['bbox_head'] |= dict(type='vit_plugin.RFDETRSegHead', mask_scale=scale)
    else:
        config.ignore(
            'mask_downsample_ratio', 'segmentation_head_activation_function', 'intermediate_size'
        )
    pixels = published.pixels(side)
    return detector_settings(model, classes.names, masks=masks, **pixels), classes.names


Parts = tuple[Section, Any, Section, float]


def _of_transformers(
    published: Published, config: ForeignConfig, dims: int, num_levels: int
) -> Parts:
    """The backbone, image size, decoder, and eps of the projector."""
    vit = inner_backbone(config, {'rf_detr_dinov2': WINDOWED_DINOV2_KIND}, SMALL_DINOV2)
    vit.only('reshape_hidden_states', True)
    backbone = encoder_section(published, vit)
    stages = blocks_before_outputs(vit, backbone['arch']['num_layers'])
    usual = [i for i in range(stages[-1] + 1) if i not in stages]
    windowed = vit.get('window_block_indexes', Sequence[Count] | None)
    _complete(
        backbone,
        stages,
        vit.get('num_windows', PositiveInt),
        usual if windowed is None else windowed,
    )
    backbone['encoder']['final_norm'] = vit['apply_layernorm']
    heads, cross = (
        config.get(f'decoder_{kind}_attention_heads', PositiveInt) for kind in ('self', 'cross')
    )
    decoder = _decoder(published, heads, cross, num_levels)
    for name in ('decoder_self_attention_heads', 'decoder_cross_attention_heads'):
        if dims % config[name]:
            raise config.refuse(name, why=f'which must divide {dims} channels')
    config.agree(
        decoder_layers=decoder['num_layers'],
        decoder_n_points=decoder['num_points'],
        decoder_ffn_dim=decoder['feedforward_channels'],
    )
    eps = config.get('layer_norm_eps', Eps)
    return backbone, backbone['img_size'], decoder, eps


def _own_settings(published: Published) -> ForeignConfig:
    """The model settings in a file of ``rfdetr``; its other settings are for training."""
    model_config = published.saved['model_config']
    known = {
        name: value
        for name, value in published.settings.items()
        if name in ROBOFLOW_KIND.defaults or name in model_config
    }
    return ForeignConfig(known, ROBOFLOW_KIND, 'its saved config')


def _of_roboflow(published: Published, config: ForeignConfig, dims: int, num_levels: int) -> Parts:
    """The same for a file of ``rfdetr``."""
    published.read.append(config)
    backbone = encoder_section(published)
    patch, side = backbone['arch']['patch_size'], backbone['img_size']
    trunk = TRUNKS.get((patch, side // patch), Trunk())
    stages = config.get('out_feature_indexes', Sequence[PositiveInt] | None) or trunk.stages
    windowed = [i for i in range(max(stages) + 1) if i not in stages]
    config.only('window_block_indexes', None, windowed)
    config.only('encoder', *ROBOFLOW_ENCODERS)
    windows = config.get('num_windows', PositiveInt | None) or trunk.windows
    _complete(backbone, stages, windows, windowed)
    heads, cross = (
        config.get(name, PositiveInt | None) or dims // channels
        for name, channels in (('sa_nheads', SELF_DIMS), ('ca_nheads', CROSS_DIMS))
    )
    decoder = _decoder(published, heads, cross, num_levels)
    named = config.get('projector_scale', Sequence[str] | None)
    if named is not None and [ROBOFLOW_SCALES.get(name) for name in named] != _scales(published):
        raise config.refuse('projector_scale', why='but its weights show others')
    config.agree(
        patch_size=patch,
        positional_encoding_size=side // patch,
        segmentation_head=MASK_BIAS in published.weights,
        dec_layers=decoder['num_layers'],
        dec_n_points=decoder['num_points'],
        dim_feedforward=decoder['feedforward_channels'],
    )
    # transformers uses another eps than the authors' code.
    size = config.get('resolution', PositiveInt | None) or trunk.resolution or side
    return backbone, size, decoder, 1e-6


def _complete(
    backbone: Section, stages: Sequence[int], windows: int, windowed: Sequence[int]
) -> None:
    """Turn an encoder into a windowed backbone, with outputs after these numbers of blocks."""
    blocks = range(backbone['arch']['num_layers'])
    backbone['encoder']['window'] = dict(
        number=windows, global_blocks=[i for i in blocks if i not in windowed and i <= stages[-1]]
    )
    backbone |= dict(
        type='vit_plugin.WindowedViT',
        out_indices=[stage - 1 for stage in stages],
        # `interpolate_pos_encoding` of both: antialias=True.
        pos_embed=dict(interpolate_mode='bicubic'),
    )


def _decoder(published: Published, heads: int, cross: int, num_levels: int) -> Section:
    """The options of the decoder."""
    places = published.shape(f'{DECODER_LAYERS}0.cross_attn.attention_weights.weight')[0]
    return dict(
        num_layers=published.count(DECODER_LAYERS),
        num_heads=heads,
        num_cross_heads=cross,
        num_points=places // (cross * num_levels),
        feedforward_channels=published.shape(f'{DECODER_LAYERS}0.linear1.weight')[0],
    )


def _scales(published: Published) -> list[float]:
    """The scale of each output of the projector."""
    start, scales = f'{BACKBONE_PREFIX}projector.stages_sampling.', []
    for i in range(published.count(f'{BACKBONE_PREFIX}projector.stages.')):
        larger, smaller = (f'{start}{i}.0.0.{name}' for name in ('weight', 'conv.weight'))
        scales.append(
            2 if larger in published.weights else 0.5 if smaller in published.weights else 1
        )
    return scales
