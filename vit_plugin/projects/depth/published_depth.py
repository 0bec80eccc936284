"""Read DPT and Depth Anything as transformers saves them.

Their ``config.json`` becomes a config of MMSegmentation's ``DepthEstimator``. Each field of it must
be touched, or loading fails: an unknown value could mean another model. ``config.get(...)`` and
``config[...]`` read a field, ``require`` accepts only the values that our model computes,
``check_agreement`` compares a field with what the weights show, and ``ignore`` skips one without
effect. See :class:`~vit_plugin.weights.foreign_config.ForeignConfig`, and ``depth_kinds.py`` for
the fields.
"""

import math
from collections.abc import Sequence
from typing import Literal

import torch

from vit_plugin.arguments.fields import Count, Positive, PositiveInt, PositiveInts, Section
from vit_plugin.errors import ConfigError
from vit_plugin.models.backbones.vit import VisionTransformer
from vit_plugin.weights.encoder_kinds import ENCODER_KINDS
from vit_plugin.weights.foreign_config import ForeignConfig
from vit_plugin.weights.published import Published, get_typed
from vit_plugin.weights.published_encoder import encoder_section
from vit_plugin.weights.published_settings import segmentor_settings
from vit_plugin.weights.transformers_config import (
    inner_backbone,
    output_stages,
)

from .depth_kinds import BIT_KIND, DEPTH_ANYTHING_DINOV2, DEPTH_ANYTHING_KIND, DPT_BIT, DPT_KIND
from .dpt_head import Readout

RESNET_PREFIX = 'patch_embed.backbone.'
UNSUPPORTED_MODEL_TYPES = ('depth_pro', 'glpn', 'prompt_depth_anything', 'zoedepth')
DINOV2_ENCODER = ENCODER_KINDS['dinov2']


def depth(published: Published) -> tuple[Section, list[str]] | None:
    """The config of a depth model, and no class names. None if it is another model.

    Raises:
        ConfigError: if it is a depth model that is not supported.
    """
    if published.model_type in UNSUPPORTED_MODEL_TYPES:
        raise ConfigError(
            f'it is a {published.model_type}, which has parts that no model here has; give a DPT '
            'or a Depth Anything'
        )
    if published.model_type not in ('dpt', 'depth_anything'):
        return None
    is_dpt = published.model_type == 'dpt'
    class_name = f'{"DPT" if is_dpt else "DepthAnything"}ForDepthEstimation'
    config = published.described_by(DPT_KIND if is_dpt else DEPTH_ANYTHING_KIND, class_name)
    if config is None:
        return None
    if is_dpt:
        backbone, head = _dpt(published, config)
    else:
        backbone, head = _depth_anything(published, config)
    if head.get('target') == 'disparity':  # scale and shift of the disparity are unknown
        head['loss_decode'] = dict(type='vit_plugin.ScaleShiftInvariantLoss')
    with torch.device('meta'):  # without weights: only its channels and strides are read
        built = VisionTransformer(**backbone)
    head |= _head_channels(published, config, built)
    model = dict(
        type='DepthEstimator',
        backbone=dict(type='vit_plugin.VisionTransformer', **backbone),
        decode_head=head,
        test_cfg=dict(mode='whole'),
    )
    return _settings(published, model, built.patch_embed.stride), []


def _head_channels(
    published: Published, config: ForeignConfig, backbone: VisionTransformer
) -> Section:
    """The arguments of the head about its maps, compared with those of the backbone."""
    levels = range(published.count('neck.convs.'))
    level_channels = [published.shape(f'neck.convs.{i}.weight')[1] for i in levels]
    fusion_channels = published.shape('neck.convs.0.weight')[0]
    config.check_agreement(neck_hidden_sizes=level_channels, fusion_hidden_size=fusion_channels)
    config.require('head_in_index', -1, len(level_channels) - 1)  # the finest map is the last one
    if len(level_channels) != len(backbone.channels):
        raise ConfigError(
            f'its backbone returns {len(backbone.channels)} maps, and its head takes '
            f'{len(level_channels)}; give the complete folder'
        )
    cnn_channels = [*backbone.channels[: len(backbone.stem_maps)]]
    if level_channels[: len(cnn_channels)] != cnn_channels:
        shown = ' and '.join(map(str, cnn_channels))
        raise config.unsupported(
            'neck_hidden_sizes', why=f'but the maps of its CNN have {shown} channels'
        )
    return dict(
        type='vit_plugin.DPTDepthHead',
        in_channels=list(backbone.channels),
        strides=list(backbone.strides),
        level_channels=level_channels,
        channels=fusion_channels,
    )


def _settings(published: Published, model: Section, patch: int) -> Section:
    """The complete config, with a test pipeline that resizes like transformers."""
    pixels = published.pixels(model['backbone']['img_size'])
    settings = segmentor_settings(model, [], **pixels)
    transforms: list[Section] = settings['test_dataloader']['dataset']['pipeline']
    if get_typed(published.processor, 'keep_aspect_ratio', bool, False):
        multiple = get_typed(published.processor, 'ensure_multiple_of', PositiveInt, patch)
        # After the resize, which is the second transform. Sides are rounded up to a multiple, in
        # transformers to the nearest one.
        divisor = math.lcm(multiple, patch)
        transforms.insert(2, dict(type='ResizeToMultiple', size_divisor=divisor))
    else:
        transforms[1] = dict(type='Resize', scale=pixels['size'], keep_ratio=False)
    return settings


def _dpt(published: Published, config: ForeignConfig) -> tuple[Section, Section]:
    """The arguments of DPT's backbone, without a final norm, and those of its head."""
    is_hybrid = published.count(RESNET_PREFIX) > 0
    config.check_agreement(is_hybrid=is_hybrid)
    if not is_hybrid:
        config.require('backbone_config', None)
        config.ignore('neck_ignore_stages')  # the stages of a CNN
    head = _dpt_head(published, config)
    config.require('patch_size', 16, [16, 16])  # the head enlarges patches to pixels
    backbone = encoder_section(published, config)
    indices = [*config.get('backbone_out_indices', Sequence[Count])]
    if is_hybrid:  # the first two maps are the ResNet's
        indices = indices[2:]
        resnet = _bit(published, config)
        backbone['arch']['resnet'] = resnet
        # `encoder_section` computed the size in patches, which are single elements of the last map.
        # This factor is the stride of that map.
        backbone['img_size'] *= 2 ** (len(resnet['stage_depths']) + 1)
    if not indices or max(indices) >= backbone['arch']['num_layers']:
        raise config.unsupported('backbone_out_indices', why='which must be some of its blocks')
    backbone['encoder']['final_norm'] = False
    backbone |= dict(
        # Resized as in `DPTViTEmbeddings._resize_pos_embed`.
        pos_embed=dict(type='learned', interpolate_mode='bilinear_mmpretrain'),
        out_indices=indices,
        out_type='pyramid' if head['readout_type'] == 'ignore' else 'pyramid_cls',
    )
    return backbone, head


def _dpt_head(published: Published, config: ForeignConfig) -> Section:
    """The arguments of DPT's head that its config states."""
    readout = config.get('readout_type', Readout)
    projects = any('readout_projects.' in name for name in published.weights)
    if (readout == 'project') != projects:
        raise config.unsupported('readout_type', why='but its weights are of another type')
    if projects:  # the readout has the activation of the blocks, and ours is a GELU
        config.require('hidden_act', 'gelu', 'gelu_python')
    has_norm = 'decode_head.fusion.0.unit1.norm1.weight' in published.ours
    config.check_agreement(use_batch_norm_in_fusion_residual=has_norm)
    config.require('use_bias_in_fusion_residual', None, not has_norm)
    norm = dict(type='BN') if has_norm else None
    return dict(readout_type=readout, target='disparity', norm_cfg=norm)


def _bit(published: Published, config: ForeignConfig) -> Section:
    """The ``resnet`` of a hybrid's arch."""
    bit = inner_backbone(config, {'bit': BIT_KIND}, DPT_BIT)
    stages = f'{RESNET_PREFIX}stages.'
    depths = [published.count(f'{stages}{i}.blocks.') for i in range(published.count(stages))]
    width = published.shape(f'{RESNET_PREFIX}stem.conv.weight')[0]
    config.require('num_channels', 3)  # both configs have this field
    bit.check_agreement(embedding_size=width, depths=depths, num_channels=3)
    sizes = [*bit.get('hidden_sizes', PositiveInts)][: len(depths)]  # the list may be longer
    if sizes != [4 * width * 2**i for i in range(len(depths))]:
        raise bit.unsupported(
            'embedding_size', 'hidden_sizes', why='but 1, 4, 8 and 16 times one width are expected'
        )
    bit.require('layer_type', 'bottleneck')
    bit.require('global_padding', 'SAME', 'same')
    bit.require('embedding_dynamic_padding', True)
    if (outputs := output_stages(bit, len(depths))) != [1, 2, 3] or len(depths) != 3:
        raise ConfigError(
            f'its backbone_config returns the maps of stages {outputs} of {len(depths)}, but a '
            'hybrid here has three stages and returns all of their maps; give another model'
        )
    return dict(stage_depths=depths, width=width)


def _depth_anything(published: Published, config: ForeignConfig) -> tuple[Section, Section]:
    """The arguments of Depth Anything's DINOv2, and those of its head."""
    encoder = inner_backbone(config, {'dinov2': DINOV2_ENCODER.config}, DEPTH_ANYTHING_DINOV2)
    encoder.require('reshape_hidden_states', False)
    backbone = encoder_section(published, encoder)
    arch = backbone['arch']
    config.check_agreement(patch_size=arch['patch_size'], reassemble_hidden_size=arch['embed_dims'])
    outputs = output_stages(encoder, arch['num_layers'])
    backbone['encoder']['final_norm'] = encoder['apply_layernorm']
    backbone |= dict(
        pos_embed=dict(type='learned', interpolate_mode=DINOV2_ENCODER.interpolate_mode),
        out_indices=[number - 1 for number in outputs],
        out_type='featmap',
    )
    head: Section = dict(head_channels=published.shape('head.conv2.weight')[0])
    config.check_agreement(head_hidden_size=head['head_channels'])
    if config.get('depth_estimation_type', Literal['relative', 'metric']) == 'metric':
        head['max_depth'] = config.get('max_depth', Positive)
    else:
        config.require('max_depth', None, 1)  # transformers uses it as a factor
        head['target'] = 'disparity'
    return backbone, head
