"""The settings of an RF-DETR: as transformers states them, and what its two formats share."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from vit_plugin.arguments.fields import Count, Eps, PositiveInt, Section
from vit_plugin.weights.foreign_config import ForeignConfig
from vit_plugin.weights.published import Published
from vit_plugin.weights.published_encoder import encoder_section
from vit_plugin.weights.transformers_config import inner_backbone, output_stages

from .rf_detr_kinds import SMALL_DINOV2, WINDOWED_DINOV2_KIND

BACKBONE_PREFIX = 'backbone.0.'
DECODER_LAYERS = 'transformer.decoder.layers.'
MASK_BIAS = 'segmentation_head.bias'


class RFDETRSettings(NamedTuple):
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


def read_transformers(
    published: Published, config: ForeignConfig, dims: int, num_levels: int
) -> RFDETRSettings:
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
    add_windows(backbone, stages, vit.get('num_windows', PositiveInt), windowed)
    backbone['encoder']['final_norm'] = vit['apply_layernorm']
    heads, cross_heads = (
        config.get(f'decoder_{name}_attention_heads', PositiveInt) for name in ('self', 'cross')
    )
    decoder = decoder_section(published, heads, cross_heads, num_levels)
    for name in ('decoder_self_attention_heads', 'decoder_cross_attention_heads'):
        if dims % config[name]:
            raise config.unsupported(name, why=f'which must divide {dims} channels')
    config.check_agreement(
        decoder_layers=decoder['num_layers'],
        decoder_n_points=decoder['num_points'],
        decoder_ffn_dim=decoder['feedforward_channels'],
    )
    eps = config.get('layer_norm_eps', Eps)
    return RFDETRSettings(backbone, backbone['img_size'], decoder, eps)


def add_windows(
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


def decoder_section(published: Published, heads: int, cross_heads: int, num_levels: int) -> Section:
    """The head's ``decoder``, by the shapes of its weights and the numbers of attention heads."""
    num_samples = published.shape(f'{DECODER_LAYERS}0.cross_attn.attention_weights.weight')[0]
    return dict(
        num_layers=published.count(DECODER_LAYERS),
        num_heads=heads,
        num_cross_heads=cross_heads,
        num_points=num_samples // (cross_heads * num_levels),
        feedforward_channels=published.shape(f'{DECODER_LAYERS}0.linear1.weight')[0],
    )


def map_scales(published: Published) -> list[float]:
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
