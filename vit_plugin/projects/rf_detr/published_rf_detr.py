"""Read RF-DETR, in Roboflow's own files and in the format of transformers.

The result is the config of the same model here. Each entry of the published config has to be read,
required to have a supported value, compared with the weights, or ignored:
:class:`~vit_plugin.weights.foreign_config.ForeignConfig` rejects others. Roboflow's files state
little, so most settings are inferred from the shapes of the weights.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from vit_plugin.arguments.fields import Count, Eps, PositiveInt, Section
from vit_plugin.errors import ConfigError
from vit_plugin.projects.detr_family.published_classes import (
    DetectorClasses,
    names_of_all_rows,
    stated_names,
)
from vit_plugin.weights.foreign_config import ForeignConfig
from vit_plugin.weights.published import Published
from vit_plugin.weights.published_encoder import encoder_section
from vit_plugin.weights.published_settings import detector_settings
from vit_plugin.weights.transformers_config import (
    inner_backbone,
    output_stages,
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
    f'{EMBEDDINGS}register_tokens': 'its backbone has registers, which a WindowedViT lacks',
    'keypoint_': 'it predicts keypoints, which no model here does',
    f'{BACKBONE_PREFIX}cross_attn_projector.': 'it has a second projector, which no model here has',
    f'{BACKBONE_PREFIX}encoder.base_model.': 'its LoRA adapters are not merged',
}
ROBOFLOW_SCALES = {'P3': 2, 'P4': 1, 'P5': 0.5}  # Roboflow's names of the map scales
ROBOFLOW_EPS = 1e-6  # eps of the projector's norms; transformers has another default
# Values of Roboflow's `encoder` that are built here; the sizes follow from the shapes.
ROBOFLOW_ENCODERS = (None, 'dinov2_windowed_small', 'dinov2_windowed_base')


class Trunk(NamedTuple):
    """Settings of a backbone in Roboflow's files that its shapes do not show.

    Attributes:
        stages: numbers of blocks after which there is an output. The block after each of these
            outputs, whose index is the same number, has global attention.
        windows: windows along a side.
        resolution: image side in pixels. None: that of the position table.
    """

    stages: Sequence[int] = (3, 6, 9, 12)
    windows: int = 2
    resolution: int | None = None


# A published backbone is recognized by its patch size in pixels and the side of its position table
# in patches. All that are not listed have `Trunk()`.
TRUNKS = {
    (14, 37): Trunk((2, 5, 8, 11), 4, 560),  # Base, and Large of 2025
    (12, 26): Trunk(windows=1),  # Seg Nano
    (20, 35): Trunk(windows=1),  # XL
}


def read_rf_detr(published: Published) -> tuple[Section, list[str]] | None:
    """The config of an RF-DETR and its classes. None if it is another model.

    Raises:
        ConfigError: if the model is not supported, or if the file is damaged.
    """
    if POSITION_TABLE not in published.weights or published.model_type not in ('', 'rf_detr'):
        return None
    for start, why in UNSUPPORTED.items():
        if any(name.startswith(start) for name in published.weights):
            raise ConfigError(f'{why}; give another model')
    # A file of `rfdetr` has no config.json.
    is_transformers = bool(published.model_type)
    num_class_rows, dims = published.shape('class_embed.weight')
    names = stated_names(published)  # files of `rfdetr` have one more row
    if is_transformers:
        names = names_of_all_rows(published, num_class_rows)
    classes = DetectorClasses(num_class_rows, names)
    groups = published.count('transformer.enc_output.')
    queries = published.shape('refpoint_embed.weight')[0] // max(groups, 1)
    blocks = published.count(f'{BACKBONE_PREFIX}projector.stages.0.0.m.')
    scales = _scales(published)
    has_masks = MASK_BIAS in published.weights
    if is_transformers:
        name = f'RfDetrFor{"InstanceSegmentation" if has_masks else "ObjectDetection"}'
        config = published.described_by(RF_DETR_KIND, name)
        if config is None:  # another class of transformers, such as one for keypoints
            return None
        parts = _read_transformers(published, config, dims, len(scales))
        max_boxes = queries  # transformers' config has no num_select
    else:
        config = _roboflow_settings(published)
        parts = _read_roboflow(published, config, dims, len(scales))
        max_boxes = config.get('num_select', PositiveInt | None) or queries
    backbone, side, decoder, eps = parts
    config.check_agreement(
        d_model=dims,
        hidden_dim=dims,
        num_queries=queries,
        group_detr=groups,
        c2f_num_blocks=blocks,
        num_feature_levels=len(scales),
    )
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
            widest=None,  # never halve wide maps first
        ),
        bbox_head=dict(
            type='vit_plugin.LWDETRHead',
            num_classes=len(classes.names),
            unused_rows=classes.unused,
            # Only Roboflow's code lets positions without a valid anchor propose an empty box.
            empty_proposals=not is_transformers,
            num_levels=len(scales),
            embed_dims=dims,
            decoder=decoder,
            num_groups=groups,
            num_queries=queries,
        ),
        test_cfg=dict(max_per_img=max_boxes),
    )
    if has_masks:
        hidden = published.shape(MASK_MLP)[0]
        config.check_agreement(intermediate_size=hidden)
        if hidden != 4 * dims:
            raise config.unsupported('intermediate_size', why=f'where {4 * dims} are computed here')
        scale = backbone['arch']['patch_size'] / config.get('mask_downsample_ratio', PositiveInt)
        model['bbox_head'] |= dict(type='vit_plugin.RFDETRSegHead', mask_scale=scale)
    else:
        config.ignore(
            'mask_downsample_ratio', 'segmentation_head_activation_function', 'intermediate_size'
        )
    pixels = published.pixels(side)
    return detector_settings(model, classes.names, masks=has_masks, **pixels), classes.names


class RFDETRParts(NamedTuple):
    """The settings that the two formats state differently.

    Attributes:
        backbone: the config of the backbone.
        size: side of the images in pixels, or height and width.
        decoder: the head's ``decoder``.
        eps: eps of the projector's norms.
    """

    backbone: Section
    size: Any
    decoder: Section
    eps: float


def _read_transformers(
    published: Published, config: ForeignConfig, dims: int, num_levels: int
) -> RFDETRParts:
    """Read a model in the format of transformers.

    Args:
        published: the checkpoint.
        config: its ``config.json``.
        dims: channels of the decoder.
        num_levels: number of maps.
    """
    vit = inner_backbone(config, {'rf_detr_dinov2': WINDOWED_DINOV2_KIND}, SMALL_DINOV2)
    vit.require('reshape_hidden_states', True)
    backbone = encoder_section(published, vit)
    stages = output_stages(vit, backbone['arch']['num_layers'])
    windowed = vit.get('window_block_indexes', Sequence[Count] | None)
    if windowed is None:
        windowed = [i for i in range(stages[-1] + 1) if i not in stages]
    _add_windows(backbone, stages, vit.get('num_windows', PositiveInt), windowed)
    backbone['encoder']['final_norm'] = vit['apply_layernorm']
    heads, cross_heads = (
        config.get(f'decoder_{name}_attention_heads', PositiveInt) for name in ('self', 'cross')
    )
    decoder = _decoder(published, heads, cross_heads, num_levels)
    for name in ('decoder_self_attention_heads', 'decoder_cross_attention_heads'):
        if dims % config[name]:
            raise config.unsupported(name, why=f'which must divide {dims} channels')
    config.check_agreement(
        decoder_layers=decoder['num_layers'],
        decoder_n_points=decoder['num_points'],
        decoder_ffn_dim=decoder['feedforward_channels'],
    )
    eps = config.get('layer_norm_eps', Eps)
    return RFDETRParts(backbone, backbone['img_size'], decoder, eps)


def _roboflow_settings(published: Published) -> ForeignConfig:
    """The settings of the model in a file of ``rfdetr``.

    The file has them among the arguments of the training (``args``), which are dropped, and in
    ``model_config``. An unknown entry of ``model_config`` is kept, so that it is reported.
    """
    model_config = published.saved['model_config']
    known = {
        name: value
        for name, value in published.settings.items()
        if name in ROBOFLOW_KIND.defaults or name in model_config
    }
    config = ForeignConfig(known, ROBOFLOW_KIND, 'its saved config')
    published.read_configs.append(config)  # entries left unread become an error, as in described_by
    return config


def _read_roboflow(
    published: Published, config: ForeignConfig, dims: int, num_levels: int
) -> RFDETRParts:
    """Read a model in a file of ``rfdetr``. See :func:`_read_transformers`."""
    backbone = encoder_section(published)
    patch, side = backbone['arch']['patch_size'], backbone['img_size']
    trunk = TRUNKS.get((patch, side // patch), Trunk())
    stages = config.get('out_feature_indexes', Sequence[PositiveInt] | None) or trunk.stages
    layers = backbone['arch']['num_layers']
    if [*stages] != sorted({*stages}) or stages[-1] > layers:
        raise config.unsupported(
            'out_feature_indexes',
            why=f'where up to {layers} blocks in ascending order are expected',
        )
    windowed = [i for i in range(stages[-1] + 1) if i not in stages]
    config.require('window_block_indexes', None, windowed)
    config.require('encoder', *ROBOFLOW_ENCODERS)
    windows = config.get('num_windows', PositiveInt | None) or trunk.windows
    _add_windows(backbone, stages, windows, windowed)
    heads, cross_heads = (
        config.get(name, PositiveInt | None) or dims // channels
        for name, channels in (('sa_nheads', SELF_DIMS), ('ca_nheads', CROSS_DIMS))
    )
    decoder = _decoder(published, heads, cross_heads, num_levels)
    names = config.get('projector_scale', Sequence[str] | None)
    if names is not None and [ROBOFLOW_SCALES.get(name) for name in names] != _scales(published):
        raise config.unsupported('projector_scale', why='but its weights show others')
    config.check_agreement(
        patch_size=patch,
        positional_encoding_size=side // patch,
        segmentation_head=MASK_BIAS in published.weights,
        dec_layers=decoder['num_layers'],
        dec_n_points=decoder['num_points'],
        dim_feedforward=decoder['feedforward_channels'],
    )
    size = config.get('resolution', PositiveInt | None) or trunk.resolution or side
    return RFDETRParts(backbone, size, decoder, ROBOFLOW_EPS)


def _add_windows(
    backbone: Section, stages: Sequence[int], windows: int, windowed: Sequence[int]
) -> None:
    """Turn an encoder into a windowed backbone in place.

    Args:
        backbone: the config of the encoder.
        stages: numbers of blocks after which there is an output.
        windows: windows along a side.
        windowed: indices of the blocks with windows.
    """
    blocks = range(backbone['arch']['num_layers'])
    backbone['encoder']['window'] = dict(
        number=windows, global_blocks=[i for i in blocks if i not in windowed and i <= stages[-1]]
    )
    backbone |= dict(
        type='vit_plugin.WindowedViT',
        out_indices=[stage - 1 for stage in stages],
        # Both libraries have `interpolate_pos_encoding` with antialias=True.
        pos_embed=dict(interpolate_mode='bicubic'),
    )


def _decoder(published: Published, heads: int, cross_heads: int, num_levels: int) -> Section:
    """The head's ``decoder``, by the shapes of its weights and the numbers of attention heads."""
    num_samples = published.shape(f'{DECODER_LAYERS}0.cross_attn.attention_weights.weight')[0]
    return dict(
        num_layers=published.count(DECODER_LAYERS),
        num_heads=heads,
        num_cross_heads=cross_heads,
        num_points=num_samples // (cross_heads * num_levels),
        feedforward_channels=published.shape(f'{DECODER_LAYERS}0.linear1.weight')[0],
    )


def _scales(published: Published) -> list[float]:
    """The scale of each output of the projector."""
    start = f'{BACKBONE_PREFIX}projector.stages_sampling.'
    scales: list[float] = []
    for i in range(published.count(f'{BACKBONE_PREFIX}projector.stages.')):
        if f'{start}{i}.0.0.weight' in published.weights:  # a transposed convolution
            scales.append(2)
        elif f'{start}{i}.0.0.conv.weight' in published.weights:  # a convolution of stride 2
            scales.append(0.5)
        else:
            scales.append(1)
    return scales
