"""DPT and Depth Anything in the form of transformers."""

import math
from collections.abc import Mapping

from vit_plugin.arguments.fields import Positive, PositiveInts, Section
from vit_plugin.errors import ConfigError
from vit_plugin.weights.published import Published, filled, required, segmentor_settings, told

FACTORS = [4, 2, 1, 0.5]  # of the sizes of the maps, by the tokens'
TOKENS = 'embeddings.position_embeddings'
BIT = 'dpt.embeddings.backbone.bit.'
OTHERS = ('depth_pro', 'glpn', 'prompt_depth_anything', 'zoedepth')  # models of depth
UNSUPPORTED = {  # entries of a config.json, and what they make of the model
    'add_projection': 'its head has one more convolution',
    'use_swiglu_ffn': 'its MLPs have gates',
    'use_bias_in_fusion_residual': 'its residual units state their bias',
}


def depth(published: Published) -> tuple[Section, list[str]] | None:
    """The config of a model of depth, which has no classes. None if it is another model.

    Raises:
        ConfigError: if it is one that cannot be built here.
    """
    if published.kind in OTHERS:
        raise ConfigError(
            f'it is a {published.kind}, which has parts that no model here has; give a DPT or '
            'a Depth Anything'
        )
    if published.kind not in ('dpt', 'depth_anything') or 'head.bias' in published.weights:
        return None
    config = published.config
    encoder = told(config, 'backbone_config', Mapping, {})
    _check_parts(published.kind, config, encoder)
    make = _dpt if published.kind == 'dpt' else _depth_anything
    backbone, head = make(published, config, encoder)
    if head.get('target') == 'disparity':  # whose scale and shift are unknown
        head['loss_decode'] = dict(type='vit_plugin.ScaleShiftInvariantLoss')
    patch = backbone.pop('stride')
    model = dict(
        type='DepthEstimator',
        backbone=dict(type='vit_plugin.VisionTransformer', **backbone),
        decode_head=dict(_head(published, backbone, patch), **head),
        test_cfg=dict(mode='whole'),
    )
    pixels = published.pixels(backbone['img_size'])
    settings = segmentor_settings(model, [], **pixels)
    steps: list[Section] = settings['test_dataloader']['dataset']['pipeline']
    if told(published.processor, 'keep_aspect_ratio', bool, False):
        multiple = told(published.processor, 'ensure_multiple_of', int, patch)
        steps.insert(2, dict(type='ResizeToMultiple', size_divisor=max(multiple, patch)))
    else:
        steps[1] = dict(type='Resize', scale=pixels['size'], keep_ratio=False)
    return settings, []


def _check_parts(kind: str, config: Mapping, encoder: Mapping) -> None:
    """Raise a ``ConfigError`` if it has parts that are not built here."""
    for name, why in UNSUPPORTED.items():
        if config.get(name) or encoder.get(name):
            raise ConfigError(f'{why}, which no model here has; give another')
    if told(config, 'reassemble_factors', list, FACTORS) != FACTORS:
        raise ConfigError('its maps have sizes of their own; give a model with the usual ones')
    if kind == 'dpt' and encoder and not config.get('is_hybrid'):
        raise ConfigError(
            f'its backbone is a {encoder.get("model_type")}, and of DPT only its own ones are '
            'built here; give another'
        )


def _head(published: Published, backbone: Mapping, patch: int) -> Section:
    """The head for four maps: the finer ones of a hybrid's CNN, and the others of the tokens."""
    widths = list(required(published.config, 'neck_hidden_sizes', PositiveInts))
    finer = widths[: 4 - len(backbone['out_indices'])]
    tokens = 4 - len(finer)
    width = backbone['arch']['embed_dims'] * (1 + (backbone['out_type'] == 'pyramid_cls'))
    return dict(
        type='vit_plugin.DPTDepthHead',
        in_channels=[*finer, *[width] * tokens],
        strides=[*[patch // 4, patch // 2][: len(finer)], *[patch] * tokens],
        level_channels=widths,
        channels=published.shape('neck.convs.0.weight')[0],
    )


def _dpt(published: Published, config: Mapping, bit: Mapping) -> tuple[Section, Section]:
    """The arguments of DPT's backbone and of its head. Its maps are not normed."""
    told_of = filled(config, dict(readout_type='project', layer_norm_eps=1e-12))
    blocks = 'dpt.encoder.layer.'
    arch = _arch(published, blocks, 'intermediate.dense', config)
    indices, readout = required(config, 'backbone_out_indices', list), told_of['readout_type']
    if bit:
        stages = f'{BIT}encoder.stages.'
        depths = [published.count(f'{stages}{i}.layers.') for i in range(published.count(stages))]
        width = published.shape(f'{BIT}embedder.convolution.weight')[0]
        arch |= dict(resnet=dict(stage_depths=depths, width=width), patch_size=1)
        indices, stride = indices[2:], 2 ** (len(depths) + 1)
    else:
        kernel = published.shape('dpt.embeddings.patch_embeddings.projection.weight')
        arch['patch_size'] = stride = kernel[-1]
    backbone = dict(
        arch=arch,
        stride=stride,
        img_size=_side(published, 'dpt.') * stride,
        numerics=dict(base='timm', norm_cfg=dict(eps=told_of['layer_norm_eps'])),
        encoder=dict(final_norm=False),
        pos_embed=dict(type='learned', interpolate_mode='bilinear_mmpretrain'),
        out_indices=indices,
        out_type='pyramid' if readout == 'ignore' else 'pyramid_cls',
    )
    norms = told(config, 'use_batch_norm_in_fusion_residual', bool, False)
    norm = dict(norm_cfg=dict(type='BN')) if norms else {}
    return backbone, dict(readout_type=readout, target='disparity', **norm)


def _depth_anything(
    published: Published, config: Mapping, encoder: Mapping
) -> tuple[Section, Section]:
    """The arguments of Depth Anything's DINOv2 and of its head."""
    told_of = filled(encoder, dict(layer_norm_eps=1e-6, apply_layernorm=True))
    arch = _arch(published, 'backbone.encoder.layer.', 'mlp.fc1', encoder)
    patch = published.shape('backbone.embeddings.patch_embeddings.projection.weight')[-1]
    backbone = dict(
        arch=dict(arch, patch_size=patch),
        stride=patch,
        img_size=_side(published, 'backbone.') * patch,
        numerics=dict(base='timm', norm_cfg=dict(eps=told_of['layer_norm_eps'])),
        encoder=dict(layer_scale_init_value=1.0, final_norm=told_of['apply_layernorm']),
        pos_embed=dict(type='learned', interpolate_mode='bicubic_mmpretrain'),
        out_indices=[i - 1 for i in required(encoder, 'out_indices', PositiveInts)],
        out_type='featmap',
    )
    head: Section = dict(head_channels=published.shape('head.conv2.weight')[0])
    if told(config, 'depth_estimation_type', str, 'relative') == 'metric':
        head['max_depth'] = required(config, 'max_depth', Positive)
    else:
        head['target'] = 'disparity'
    return backbone, head


def _arch(published: Published, blocks: str, fc1: str, config: Mapping) -> Section:
    width = published.shape(f'{blocks}0.attention.output.dense.weight')[0]
    return dict(
        embed_dims=width,
        num_layers=published.count(blocks),
        num_heads=filled(config, dict(num_attention_heads=12))['num_attention_heads'],
        feedforward_channels=published.shape(f'{blocks}0.{fc1}.weight')[0],
    )


def _side(published: Published, prefix: str) -> int:
    """The side of the position table, in tokens."""
    return math.isqrt(published.shape(f'{prefix}{TOKENS}')[1] - 1)
