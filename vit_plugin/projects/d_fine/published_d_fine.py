"""Read D-FINE as transformers saves it: its ``config.json`` becomes a config of MMEngine.

The readers of DEIMv2 and RT-DETR use the same functions: ``convert_head`` for RT-DETR's head,
``convert_fine_head`` for a head with distributions, ``convert_hgnet`` for the CNN and
``hybrid_encoder`` for the neck.

Each function must touch every field of its part of the config, or loading fails: an unknown value
could mean another model. ``config.get(...)`` and ``config[...]`` read a field, ``require`` accepts
only the values that our model computes, ``check_agreement`` compares a field with what the weights
show, and ``ignore`` skips one without effect. See
:class:`~vit_plugin.weights.foreign_config.ForeignConfig`, and ``d_fine_kinds.py`` for the fields.
"""

from collections.abc import Sequence
from typing import Any

import torch

from vit_plugin.arguments.fields import Count, NotNegative, Positive, PositiveInt, Section
from vit_plugin.errors import ConfigError
from vit_plugin.projects.detr_family.published_classes import (
    COCO_ROWS,
    DetectorClasses,
    stated_names,
)
from vit_plugin.weights.foreign_config import ForeignConfig
from vit_plugin.weights.published import Published
from vit_plugin.weights.published_settings import detector_settings
from vit_plugin.weights.transformers_config import inner_backbone, output_stages

from .d_fine_kinds import D_FINE_KIND, HGNET_L, HGNET_V2_KIND

PUBLISHED_SIDE = 640  # pixels; side of the images, if a folder has no processor
COCO_CLASSES = COCO_ROWS[-1]  # 80, the classes of the published models
# transformers' names of activations -> ours.
ACTIVATION_TYPES = {'silu': 'SiLU', 'swish': 'SiLU', 'relu': 'ReLU', 'gelu': 'GELU'}
# Fields of the denoising in training, which do not affect predictions.
TRAINING_FIELDS = ('num_denoising', 'label_noise_ratio', 'box_noise_scale')


def d_fine(published: Published) -> tuple[Section, list[str]] | None:
    """The config of a D-FINE, and the names of its classes. None if it is another model.

    Raises:
        ConfigError: if the config contradicts the weights, or describes an unsupported model.
    """
    if published.model_type != 'd_fine':
        return None
    config = published.described_by(D_FINE_KIND, 'DFineForObjectDetection')
    if config is None:
        return None
    cnn = inner_backbone(config, {'hgnet_v2': HGNET_V2_KIND}, HGNET_L)
    backbone, channels = convert_hgnet(cnn, config)
    config.require('decoder_activation_function', 'relu')
    config.require('activation_function', 'silu', 'swish')  # half of transformers' layers ignore it
    options = dict(kind='elan', **fusion_options(config))
    neck = hybrid_encoder(config, channels, options)
    head, classes = convert_fine_head(published, config, len(channels), 'd_fine')
    model = dict(type='SingleStageDetector', backbone=backbone, neck=neck, bbox_head=head)
    return detector_config(published, model, classes), classes


def detector_config(
    published: Published, model: Section, classes: list[str], normalized: bool = False
) -> Section:
    """The config of a complete detector.

    Args:
        published: the folder, whose processor states the size of images and their normalization.
        model: the backbone, the neck and the head.
        classes: the names of the classes.
        normalized: whether colors are normalized if the folder does not state it.
    """
    model['test_cfg'] = dict(max_per_img=model['bbox_head']['num_queries'])
    return detector_settings(
        model, classes, **published.pixels(PUBLISHED_SIDE, normalized=normalized)
    )


def convert_hgnet(cnn: ForeignConfig, config: ForeignConfig) -> tuple[Section, list[int]]:
    """An HGNetV2 as backbone, and the channels of the maps that it returns.

    Args:
        cnn: the config of the backbone.
        config: the config of the detector.
    """
    names = (
        'in_channels mid_channels out_channels num_blocks downsample light_block kernel_size '
        'numb_of_layers'
    )
    columns = [cnn.get(f'stage_{name}', Sequence[Any]) for name in names.split()]
    stages = [list(row) for row in zip(*columns, strict=True)]
    # Only the number of depths matters: `stage_num_blocks` has the blocks that are built.
    num_stages = len(cnn.get('depths', Sequence[Count]))
    if num_stages != len(stages):
        raise cnn.unsupported('depths', why=f'but it has {len(stages)} stages')
    # Each stage counts as a block, and outputs as the number of stages before them.
    indices = [before - 1 for before in output_stages(cnn, num_stages)]
    stem = cnn.get('stem_channels', Sequence[PositiveInt])
    # transformers takes the inputs of the neck's projections from these widths.
    widths = cnn.get('hidden_sizes', Sequence[PositiveInt])
    if len(widths) != num_stages or any(widths[i] != stages[i][2] for i in indices):
        raise cnn.unsupported('hidden_sizes', why='but stage_out_channels has other values')
    cnn.require('stem_strides', [2, 1, 1, 2, 1])
    cnn.require('stage_downsample_strides', [2] * num_stages, [2, 2, 2, 2])
    cnn.require('hidden_act', 'relu')
    cnn.require('num_channels', 3)
    if len(stem) != 3 or stem[0] != 3:
        raise cnn.unsupported(
            'stem_channels', why='where three numbers are expected, the first 3 for RGB'
        )
    backbone = dict(
        type='vit_plugin.HGNetV2',
        arch=dict(stem=list(stem[1:]), stages=stages),
        learnable_affine=cnn['use_learnable_affine_block'],
        out_indices=indices,
        frozen_norms=config['freeze_backbone_batch_norms'],
    )
    return backbone, [int(stages[i][2]) for i in indices]


def fusion_options(config: ForeignConfig) -> Section:
    """Depth and width of the neck's fusion blocks. Loading compares them with the weights."""
    return dict(
        depth=config.get('depth_mult', Positive), expansion=config.get('hidden_expansion', Positive)
    )


def hybrid_encoder(
    config: ForeignConfig,
    channels: Sequence[int],
    options: Section,
    has_input_projections: bool = True,
) -> Section:
    """The neck: RT-DETR's hybrid encoder, which is unrelated to our ResNet-ViT hybrids.

    Args:
        config: the config of the detector.
        channels: channels of the backbone's maps.
        options: further arguments of ``HybridEncoder``: its ``kind``, and the options of its fusion
            blocks.
        has_input_projections: whether the encoder first projects all maps to one width.
    """
    dims = config.get('encoder_hidden_dim', PositiveInt)
    config.require('encoder_in_channels', list(channels))
    config.require('positional_encoding_temperature', 10000)
    config.require('eval_size', None)  # with a size, transformers leaves out the positions
    config.require('normalize_before', False)
    config.require('layer_norm_eps', 1e-5)
    return dict(
        type='vit_plugin.HybridEncoder',
        in_channels=list(channels),
        out_channels=dims,
        num_layers=config.get('encoder_layers', Count),
        num_heads=_heads(config, 'encoder_attention_heads', dims),
        feedforward_channels=config.get('encoder_ffn_dim', PositiveInt),
        act=activation(config, 'activation_function'),
        attention_act=activation(config, 'encoder_activation_function'),
        attended=list(config.get('encode_proj_layers', Sequence[Count])),
        projects=has_input_projections,
        **options,
    )


def activation(config: ForeignConfig, name: str) -> str:
    """Our type of the activation in the field ``name``."""
    config.require(name, *ACTIVATION_TYPES)
    return ACTIVATION_TYPES[config[name]]


def _heads(config: ForeignConfig, name: str, dims: int) -> int:
    """The number of attention heads in the field ``name``, which must divide ``dims``."""
    heads = config.get(name, PositiveInt)
    if dims % heads:
        raise config.unsupported(name, why=f'which must divide {dims} channels')
    return heads


def convert_fine_head(
    published: Published, config: ForeignConfig, levels: int, variant: str
) -> tuple[Section, list[str]]:
    """D-FINE's head, which predicts distributions, and the names of its classes.

    Arguments are those of :func:`convert_head`.
    """
    head, classes = convert_head(published, config, levels, variant)
    config.require('eval_idx', -1, head['decoder']['num_layers'] - 1)
    config.ignore('layer_scale')  # only scales layers after the one that predicts
    head |= dict(type='vit_plugin.DFINEHead', distributions=_distributions(config))
    return head, classes


def convert_head(
    published: Published, config: ForeignConfig, levels: int, variant: str
) -> tuple[Section, list[str]]:
    """RT-DETR's head, and the names of its classes.

    Args:
        published: the weights.
        config: the config of the detector.
        levels: number of maps that the decoder reads.
        variant: the decoder, a row of ``fine_decoder.DECODER_VARIANTS``.
    """
    rows, dims = published.shape('bbox_head.proposal_cls.weight')
    classes = detected_class_names(published, rows)
    layers = published.count('bbox_head.layers.')
    inputs = list(config.get('decoder_in_channels', Sequence[PositiveInt]))
    config.require('batch_norm_eps', 1e-5)  # transformers reads it in some norms only
    config.check_agreement(d_model=dims, decoder_layers=layers)
    config.require('num_feature_levels', levels)
    encoder_dims = config['encoder_hidden_dim']
    if inputs != [encoder_dims] * levels:
        raise config.unsupported(
            'decoder_in_channels', why=f'but {levels} times {encoder_dims} is expected'
        )
    config.require('learn_initial_query', False)
    config.ignore(*TRAINING_FIELDS)
    # If tied, files may store the classifiers as layers of the decoder alone, else twice.
    if not config['tie_word_embeddings'] and not published.count('class_embed.'):
        raise config.unsupported('tie_word_embeddings', why='but its weights lack class_embed')
    config.check_agreement(head_dim=dims // _heads(config, 'decoder_attention_heads', dims))
    decoder = _decoder(config, levels, layers)
    _check_point_scales(published, config, decoder['num_points'])
    # The embedding of the noised objects' classes serves training only, and some files lack it.
    has_noised_classes = 'bbox_head.noised_classes.weight' in published.ours
    head = dict(
        type='vit_plugin.RTDETRHead',
        num_classes=rows,
        num_queries=config.get('num_queries', PositiveInt),
        in_channels=inputs,
        embed_dims=dims,
        variant=variant,
        decoder=decoder,
        noise=dict(
            number=config.get('num_denoising', Count) if has_noised_classes else 0,
            labels=config.get('label_noise_ratio', NotNegative),
            boxes=config.get('box_noise_scale', NotNegative),
        ),
    )
    return head, classes


def detected_class_names(published: Published, rows: int) -> list[str]:
    """The class names: the stated ones, else COCO's for 80 rows, else numbered ones.

    Args:
        published: the checkpoint.
        rows: rows of the classification layer, which all stand for a class.

    Raises:
        ConfigError: if the stated names leave out a row.
    """
    # DetectorClasses takes COCO's names if it gets none.
    numbered = {} if rows == COCO_CLASSES else {i: f'class {i}' for i in range(rows)}
    classes = DetectorClasses(rows, stated_names(published) or numbered)
    if classes.unused:
        raise ConfigError(f'its id2label does not name {rows} classes; correct it')
    return classes.names


def _decoder(config: ForeignConfig, levels: int, layers: int) -> Section:
    """The ``decoder`` of a head, see ``FineDecoderCfg``."""
    scale, method = 'decoder_offset_scale', 'decoder_method'  # RT-DETR has neither field
    points = config.get('decoder_n_points', PositiveInt | Sequence[PositiveInt])
    decoder: Section = dict(
        num_layers=layers,
        num_heads=config.get('decoder_attention_heads', PositiveInt),
        num_points=[points] * levels if isinstance(points, int) else list(points),
        feedforward_channels=config.get('decoder_ffn_dim', PositiveInt),
        **(dict(offset_scale=config.get(scale, Positive)) if config.may_have(scale) else {}),
    )
    if config.may_have(method):
        config.require(method, 'default', 'discrete')
        decoder['discrete'] = config[method] == 'discrete'
    return decoder


def _check_point_scales(published: Published, config: ForeignConfig, points: Sequence[int]) -> None:
    """Raise a ``ConfigError`` if the file has other scales for the offsets of points.

    Our model computes the scale of a point: 1 / n in a map with n points.
    """

    def fits(scales: torch.Tensor) -> bool:
        if scales.shape != (sum(points),):  # compared first, since a config may state any numbers
            return False
        expected = torch.tensor([1 / number for number in points for _ in range(number)])
        return torch.allclose(scales, expected, atol=1e-3)

    for name in published.weights:
        is_scale = name.endswith(('.n_points_scale', '.num_points_scale'))
        if is_scale and not fits(published.weights[name].float()):
            raise config.unsupported(
                'decoder_n_points', why=f'whose reciprocals are not the values of {name}'
            )


def _distributions(config: ForeignConfig) -> Section:
    """The ``distributions`` of a ``DFINEHead``."""
    return dict(
        bins=config.get('max_num_bins', PositiveInt),
        up=float(config.get('up', Positive)),
        scale=float(config.get('reg_scale', Positive)),
        top=config.get('top_prob_values', PositiveInt),
        quality_channels=config.get('lqe_hidden_dim', PositiveInt),
        quality_layers=config.get('lqe_layers', PositiveInt),
    )
