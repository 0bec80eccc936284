"""Read DEIMv2 as transformers saves it, on DINOv3 or on HGNetV2.

``published_d_fine.py`` explains how each field of the config must be touched.
"""

from collections.abc import Sequence
from dataclasses import replace

from vit_plugin.arguments.fields import Count, PositiveInt, Section
from vit_plugin.weights.encoder_kinds import ENCODER_KINDS
from vit_plugin.weights.foreign_config import ForeignConfig
from vit_plugin.weights.published import Published
from vit_plugin.weights.published_encoder import encoder_section
from vit_plugin.weights.published_positions import dinov3_rotary
from vit_plugin.weights.transformers_config import inner_backbone, output_stages

from .d_fine_kinds import DEIMV2_KIND, HGNET_L, HGNET_V2_KIND
from .published_d_fine import activation, detector_config, fusion_options, hybrid_encoder
from .published_fine_head import convert_fine_head
from .published_hgnet import convert_hgnet

DINOV3 = ENCODER_KINDS['dinov3_vit'].config
# A field for backbones alone: an additional output, which no detector uses.
CLASS_TOKEN = dict(return_class_token=False)
BACKBONE_KINDS = {
    'hgnet_v2': HGNET_V2_KIND,
    'dinov3_vit': replace(DINOV3, defaults={**DINOV3.defaults, **CLASS_TOKEN}),
}
# Fields of the hybrid encoder that have no effect on the lite one, which has no attention.
ATTENTION_FIELDS = (
    'encoder_layers',
    'encoder_ffn_dim',
    'encode_proj_layers',
    'eval_size',
    'normalize_before',
    'positional_encoding_temperature',
    'encoder_activation_function',
)


def deimv2(published: Published) -> tuple[Section, list[str]] | None:
    """The config of a DEIMv2, and the names of its classes. None if it is another model.

    Raises:
        ConfigError: if the config contradicts the weights, or describes an unsupported model.
    """
    if published.model_type != 'deimv2':
        return None
    config = published.described_by(DEIMV2_KIND, 'Deimv2ForObjectDetection')
    if config is None:
        return None
    inner = inner_backbone(config, BACKBONE_KINDS, HGNET_L)
    is_vit = 'detail.0.conv.weight' in published.ours
    if is_vit:
        dims = config.get('encoder_hidden_dim', PositiveInt)
        backbone, channels = _adapter(published, config, inner, dims), [dims] * 3
    else:
        backbone, channels = convert_hgnet(inner, config)
    config.require('encoder_type', 'hybrid', 'lite')
    config.require('encoder_fuse_op', 'sum')
    trailing = config['encoder_has_trailing_conv']
    options = fusion_options(config)
    if config['encoder_type'] == 'lite':
        # It makes two maps of one.
        neck, levels = _lite(config, channels, dict(options, trailing=trailing)), 2
    else:
        options['kind'] = 'split_trailing' if trailing else 'split'
        neck = hybrid_encoder(config, channels, options, has_input_projections=not is_vit)
        levels = len(channels)
    head, classes = convert_fine_head(published, config, levels, 'deimv2_transformers')
    head['decoder']['gated'] = config['use_gateway']
    head['distributions']['shared'] = config['share_bbox_head']
    head['loss_cls'] = dict(type='vit_plugin.MatchabilityAwareLoss')
    config.require('decoder_activation_function', 'relu')
    model = dict(type='SingleStageDetector', backbone=backbone, neck=neck, bbox_head=head)
    return detector_config(published, model, classes, normalized=is_vit), classes


def _adapter(published: Published, config: ForeignConfig, vit: ForeignConfig, dims: int) -> Section:
    """The backbone: DINOv3 with a thin CNN next to it.

    Args:
        published: the weights.
        config: the config of the detector.
        vit: the config of DINOv3.
        dims: channels of its maps, which are those of the neck.
    """
    backbone = encoder_section(published, vit)
    layers = backbone['arch']['num_layers']
    vit.require('reshape_hidden_states', True)
    indices = [number - 1 for number in output_stages(vit, layers)]
    norms_all = vit['apply_layernorm']  # otherwise transformers norms only the last block's output
    backbone['encoder']['final_norm'] = norms_all or indices[-1] == layers - 1
    config.ignore('freeze_backbone_batch_norms')  # a transformer has none
    planes = config.get('spatial_tuning_adapter_inplanes', PositiveInt)
    return dict(
        backbone,
        type='vit_plugin.SpatialTuningAdapter',
        out_channels=dims,
        conv_inplane=planes,
        out_indices=indices,
        norms_last=not norms_all,
        pos_embed=dinov3_rotary(vit),
    )


def _lite(config: ForeignConfig, channels: Sequence[int], options: Section) -> Section:
    """The neck of the smallest models."""
    config.require('encoder_in_channels', list(channels))
    config.ignore(*ATTENTION_FIELDS)
    config.get('encoder_attention_heads', Count)  # checked, but unused
    config.require('layer_norm_eps', 1e-5)
    return dict(
        type='vit_plugin.LiteEncoder',
        in_channels=list(channels),
        out_channels=config.get('encoder_hidden_dim', PositiveInt),
        act=activation(config, 'activation_function'),
        **options,
    )
