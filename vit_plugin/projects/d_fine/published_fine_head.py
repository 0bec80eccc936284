"""Read the heads of RT-DETR, D-FINE and DEIMv2 in configs of transformers.

``published_d_fine.py`` explains how each field of the config must be touched.
"""

from collections.abc import Sequence

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

COCO_CLASSES = COCO_ROWS[-1]  # 80, the classes of the published models
# Fields of the denoising in training, which do not affect predictions.
TRAINING_FIELDS = ('num_denoising', 'label_noise_ratio', 'box_noise_scale')


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
        variant: the decoder, a row of ``decoder_variants.DECODER_VARIANTS``.
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
    heads = attention_heads(config, 'decoder_attention_heads', dims)
    config.check_agreement(head_dim=dims // heads)
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


def attention_heads(config: ForeignConfig, name: str, dims: int) -> int:
    """The number of attention heads in the field ``name``, which must divide ``dims``."""
    heads = config.get(name, PositiveInt)
    if dims % heads:
        raise config.unsupported(name, why=f'which must divide {dims} channels')
    return heads
