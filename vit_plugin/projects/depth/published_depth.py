"""DPT and Depth Anything in the form of transformers."""

from collections.abc import Mapping

import torch

from vit_plugin.arguments.fields import Positive, PositiveInts, Section
from vit_plugin.errors import ConfigError
from vit_plugin.models.backbones.vit import VisionTransformer
from vit_plugin.weights.published import Published, filled, required, segmentor_settings, told

FACTORS = [4, 2, 1, 0.5]  # of the sizes of the maps, by the tokens'
RESNET = 'patch_embed.backbone.'
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
    backbone, head = make(published, encoder)
    if head.get('target') == 'disparity':  # whose scale and shift are unknown
        head['loss_decode'] = dict(type='vit_plugin.ScaleShiftInvariantLoss')
    with torch.device('meta'):
        built = VisionTransformer(**backbone)
    head |= dict(
        type='vit_plugin.DPTDepthHead',
        in_channels=list(built.channels),
        strides=list(built.strides),
        level_channels=list(required(config, 'neck_hidden_sizes', PositiveInts)),
        channels=published.shape('neck.convs.0.weight')[0],
    )
    model = dict(
        type='DepthEstimator',
        backbone=dict(type='vit_plugin.VisionTransformer', **backbone),
        decode_head=head,
        test_cfg=dict(mode='whole'),
    )
    pixels = published.pixels(backbone['img_size'])
    settings = segmentor_settings(model, [], **pixels)
    steps: list[Section] = settings['test_dataloader']['dataset']['pipeline']
    if told(published.processor, 'keep_aspect_ratio', bool, False):
        patch = built.patch_embed.stride
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


def _dpt(published: Published, bit: Mapping) -> tuple[Section, Section]:
    """The arguments of DPT's backbone, whose maps are not normed, and of its head."""
    config = filled(
        published.config,
        dict(readout_type='project', use_batch_norm_in_fusion_residual=False),
    )
    backbone, readout = published.vit(config, eps=1e-12), config['readout_type']
    indices = required(config, 'backbone_out_indices', list)
    if bit:  # whose maps are the first two
        indices, stages = indices[2:], f'{RESNET}stages.'
        depths = [published.count(f'{stages}{i}.blocks.') for i in range(published.count(stages))]
        width = published.shape(f'{RESNET}stem.conv.weight')[0]
        backbone['arch']['resnet'] = dict(stage_depths=depths, width=width)
        backbone['img_size'] *= 2 ** (len(depths) + 1)
    backbone |= dict(
        encoder=dict(final_norm=False),
        pos_embed=dict(type='learned', interpolate_mode='bilinear_mmpretrain'),
        out_indices=indices,
        out_type='pyramid' if readout == 'ignore' else 'pyramid_cls',
    )
    norm = dict(type='BN') if config['use_batch_norm_in_fusion_residual'] else None
    return backbone, dict(readout_type=readout, target='disparity', norm_cfg=norm)


def _depth_anything(published: Published, encoder: Mapping) -> tuple[Section, Section]:
    """The arguments of Depth Anything's DINOv2 and of its head."""
    has_norm = told(encoder, 'apply_layernorm', bool, True)
    backbone = dict(
        published.vit(encoder),
        encoder=dict(layer_scale_init_value=1.0, final_norm=has_norm),
        pos_embed=dict(type='learned', interpolate_mode='bicubic_mmpretrain'),
        out_indices=[i - 1 for i in required(encoder, 'out_indices', PositiveInts)],
        out_type='featmap',
    )
    head: Section = dict(head_channels=published.shape('head.conv2.weight')[0])
    if told(published.config, 'depth_estimation_type', str, 'relative') == 'metric':
        head['max_depth'] = required(published.config, 'max_depth', Positive)
    else:
        head['target'] = 'disparity'
    return backbone, head
