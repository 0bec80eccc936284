"""Write a D-FINE, DEIMv2 or RT-DETR as transformers saves it.

The inverse of ``published_d_fine.py``, ``published_deimv2.py`` and ``published_rt_detr.py``: a
config of MMEngine becomes the content of ``config.json``. Fields that are left out keep
transformers' defaults.
"""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from torch import nn

from vit_plugin.arguments.fields import Section
from vit_plugin.errors import ConfigError

from .d_fine_head import DFINEHead
from .hgnet_v2 import ARCHS
from .proposing_head import ProposingHead
from .published_d_fine import ACTIVATION_TYPES
from .published_rt_detr import RESNET_LAYERS

# Our type of an activation -> transformers' name; 'silu', not 'swish'.
ACTIVATION_NAMES = {ours: theirs for theirs, ours in reversed(ACTIVATION_TYPES.items())}
# Backbone and variant of the decoder -> `model_type`, beginning of the class name, weight format.
WRITTEN_KINDS = {
    ('HGNetV2', 'd_fine'): ('d_fine', 'DFine', 'hf_d_fine'),
    ('HGNetV2', 'deimv2_transformers'): ('deimv2', 'Deimv2', 'hf_deimv2_cnn'),
    ('SpatialTuningAdapter', 'deimv2_transformers'): ('deimv2', 'Deimv2', 'hf_deimv2'),
    ('ResNetD', 'rt_detr'): ('rt_detr', 'RTDetr', 'hf_rt_detr'),
}
# The row for an RT-DETR with settings that only RT-DETRv2 has.
RT_DETR_V2_ROW = ('rt_detr_v2', 'RTDetrV2', 'hf_rt_detr')
WRITTEN_NECKS = ('HybridEncoder', 'LiteEncoder')  # the latter is in another project
RT_DETR_OFFSET_SCALE = 0.5  # fixed in RT-DETR, a field of RT-DETRv2's config


def real_time_folder(
    model: nn.Module, section: Section, encoder_fields: Callable[[nn.Module, str], Section]
) -> tuple[Section, str] | None:
    """The content of ``config.json`` without classes, and the name of the weight format.

    Args:
        model: a detector.
        section: its section of a config.
        encoder_fields: a function (Vision Transformer, ``model_type``) -> the fields of its config.

    Returns:
        None if the detector is none of these models.

    Raises:
        ConfigError: if transformers has no such model.
    """
    # Detectors of two stages have no `bbox_head`.
    if not isinstance(getattr(model, 'bbox_head', None), ProposingHead):
        return None
    head = {**_defaults(type(model.bbox_head), ProposingHead), **section['bbox_head']}
    backbone = type(model.backbone).__name__
    if (backbone, head['variant']) not in WRITTEN_KINDS:
        raise ConfigError(
            f'transformers has no decoder {head["variant"]!r} on {backbone}; it has '
            f'{", ".join(f"{variant} on {name}" for name, variant in WRITTEN_KINDS)}'
        )
    neck_class = type(getattr(model, 'neck', None))
    if neck_class.__name__ not in WRITTEN_NECKS:
        raise ConfigError(
            f'transformers has such a decoder only on the maps of {" or ".join(WRITTEN_NECKS)}'
        )
    neck = {**_defaults(neck_class), **section['neck']}
    model_type, class_prefix, weight_format = WRITTEN_KINDS[backbone, head['variant']]
    decoder = dict(head['decoder'] or {})
    discrete = decoder.get('discrete', False)
    if model_type == 'rt_detr' and (
        discrete or decoder.get('offset_scale', RT_DETR_OFFSET_SCALE) != RT_DETR_OFFSET_SCALE
    ):
        model_type, class_prefix, weight_format = RT_DETR_V2_ROW
    fields = {
        **_neck_fields(neck, model_type),
        **_head_fields(model.bbox_head, head, decoder, model_type),
    }
    if isinstance(model.bbox_head, DFINEHead):
        fields |= _distribution_fields({**(head['distributions'] or {})}, decoder)
    if model_type == 'rt_detr_v2':
        fields |= dict(decoder_n_levels=len(neck['in_channels']))
        fields |= dict(decoder_offset_scale=decoder.get('offset_scale', RT_DETR_OFFSET_SCALE))
    if discrete:
        fields |= dict(decoder_method='discrete')
    if model_type == 'deimv2':
        fields |= _deimv2_fields(neck, head, model.bbox_head)
    fields |= BACKBONE_WRITERS[backbone](model.backbone, {**section['backbone']}, encoder_fields)
    architectures = [f'{class_prefix}ForObjectDetection']
    return dict(
        architectures=architectures, model_type=model_type, **fields, dtype='float32'
    ), weight_format


def _defaults(*classes: type) -> Section:
    """The defaults of the arguments of a class and its bases. Earlier classes take precedence."""
    defaults: Section = {}
    for class_ in reversed(classes):
        parameters = inspect.signature(class_).parameters.values()
        defaults |= {
            parameter.name: parameter.default
            for parameter in parameters
            if parameter.default is not parameter.empty
        }
    return defaults


def _activation(name: str) -> str:
    """transformers' name of our type of an activation."""
    if name not in ACTIVATION_NAMES:
        raise ConfigError(f'its activation is {name}, which such a model of transformers lacks')
    return ACTIVATION_NAMES[name]


def _neck_fields(neck: Mapping[str, Any], model_type: str) -> Section:
    """The fields of the neck."""
    levels = len(neck['in_channels'])
    if neck['type'].endswith('LiteEncoder'):
        fields: Section = dict(encoder_type='lite', encoder_in_channels=list(neck['in_channels']))
    else:
        fields = dict(
            encoder_in_channels=list(neck['in_channels']),
            encoder_layers=neck['num_layers'],
            encoder_ffn_dim=neck['feedforward_channels'],
            encoder_attention_heads=neck['num_heads'],
            encode_proj_layers=[i % levels for i in neck['attended']],
            encoder_activation_function=_activation(neck['attention_act']),
        )
    fields |= dict(
        encoder_hidden_dim=neck['out_channels'],
        activation_function=_activation(neck['act']),
        hidden_expansion=neck['expansion'],
    )
    return fields if model_type.startswith('rt_detr') else dict(fields, depth_mult=neck['depth'])


def _head_fields(head: nn.Module, section: Section, decoder: Section, model_type: str) -> Section:
    """The fields of the head and its decoder.

    Args:
        head: the head.
        section: its section of the config, with defaults.
        decoder: the ``decoder`` in it.
        model_type: that of the written model.
    """
    points = list(decoder.get('num_points', [4] * len(head.in_channels)))
    if model_type.startswith('rt_detr'):
        if len({*points}) > 1:
            raise ConfigError(
                f'its maps have {points} sampling points; transformers has one number for all maps'
            )
        points = points[0]
    noise = {'number': 100, 'labels': 0.5, 'boxes': 1.0, **(section['noise'] or {})}
    return dict(
        d_model=head.embed_dims,
        num_queries=head.num_queries,
        decoder_in_channels=list(head.in_channels),
        decoder_layers=len(head.layers),
        decoder_attention_heads=decoder.get('num_heads', 8),
        decoder_ffn_dim=decoder.get('feedforward_channels', 1024),
        decoder_n_points=points,
        num_feature_levels=len(head.in_channels),
        num_denoising=noise['number'],
        label_noise_ratio=noise['labels'],
        box_noise_scale=noise['boxes'],
    )


def _distribution_fields(options: Section, decoder: Section) -> Section:
    """The fields that RT-DETR lacks."""
    return dict(
        max_num_bins=options.get('bins', 32),
        up=options.get('up', 0.5),
        reg_scale=options.get('scale', 4.0),
        top_prob_values=options.get('top', 4),
        lqe_hidden_dim=options.get('quality_channels', 64),
        lqe_layers=options.get('quality_layers', 2),
        decoder_offset_scale=decoder.get('offset_scale', 0.5),
    )


def _deimv2_fields(neck: Mapping[str, Any], head: Section, built: nn.Module) -> Section:
    """The fields that only DEIMv2 has, from the sections of neck and head and the built head."""
    is_lite = neck['type'].endswith('LiteEncoder')
    trailing = neck.get('trailing', True) if is_lite else neck['kind'] == 'split_trailing'
    return dict(
        encoder_has_trailing_conv=trailing,
        use_gateway=(head['decoder'] or {}).get('gated', built.variant.gated),
        share_bbox_head=(head['distributions'] or {}).get('shared', False),
    )


def _hgnet_fields(backbone: nn.Module, section: Section, encoder_fields: Any) -> Section:
    """The fields of an HGNetV2."""
    arch = section.get('arch', 'B0')
    stem, stages = ARCHS[arch] if isinstance(arch, str) else (arch['stem'], arch['stages'])
    names = (
        'in_channels mid_channels out_channels num_blocks downsample light_block kernel_size '
        'numb_of_layers'
    )
    columns = zip(names.split(), zip(*stages, strict=True), strict=True)
    fields = dict(
        model_type='hgnet_v2',
        stem_channels=[3, *stem],
        depths=[blocks for _, _, _, blocks, *_ in stages],
        hidden_sizes=[outputs for _, _, outputs, *_ in stages],
        out_indices=[i + 1 for i in backbone.indices],
        use_learnable_affine_block=section.get('learnable_affine', True),
        **{f'stage_{name}': list(values) for name, values in columns},
    )
    frozen = section.get('frozen_norms', False)
    return dict(backbone_config=fields, freeze_backbone_batch_norms=frozen)


def _resnet_fields(backbone: nn.Module, section: Section, encoder_fields: Any) -> Section:
    """The fields of a ResNet-D."""
    stages_of_depth = {depth: stages for stages, depth in RESNET_LAYERS.items()}
    depths, is_bottleneck = stages_of_depth[section.get('depth', 50)]
    fields = dict(
        model_type='rt_detr_resnet',
        depths=list(depths),
        hidden_sizes=[(256 if is_bottleneck else 64) * 2**i for i in range(len(depths))],
        layer_type='bottleneck' if is_bottleneck else 'basic',
        out_indices=[i + 1 for i in section.get('out_indices', (1, 2, 3))],
    )
    frozen = section.get('frozen_norms', True)
    return dict(backbone_config=fields, freeze_backbone_batch_norms=frozen)


def _adapter_fields(
    backbone: nn.Module, section: Section, encoder_fields: Callable[[nn.Module, str], Section]
) -> Section:
    """The fields of a transformer with DEIMv2's adapter."""
    if not len(backbone.detail):
        raise ConfigError('its adapter has the maps of a hybrid, which transformers does not have')
    fields = dict(
        encoder_fields(backbone, 'dinov3_vit'),
        out_indices=[i + 1 for i in backbone.out_indices],
        apply_layernorm=not section.get('norms_last', False),
    )
    planes = backbone.detail[0].conv.out_channels
    return dict(backbone_config=fields, spatial_tuning_adapter_inplanes=planes)


# (backbone, its section of the config, encoder_fields) -> the fields of the backbone. Only the
# writer of the adapter calls `encoder_fields`.
BACKBONE_WRITERS = dict(
    HGNetV2=_hgnet_fields, ResNetD=_resnet_fields, SpatialTuningAdapter=_adapter_fields
)
