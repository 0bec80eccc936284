"""Read D-FINE as transformers saves it: its ``config.json`` becomes a config of MMEngine.

The readers of DEIMv2 and RT-DETR share its parts: the neck is read here, the head in
``published_fine_head.py`` and the CNN in ``published_hgnet.py``.

Each function must touch every field of its part of the config, or loading fails: an unknown value
could mean another model. ``config.get(...)`` and ``config[...]`` read a field, ``require`` accepts
only the values that our model computes, ``check_agreement`` compares a field with what the weights
show, and ``ignore`` skips one without effect. See
:class:`~vit_plugin.weights.foreign_config.ForeignConfig`, and ``d_fine_kinds.py`` for the fields.
"""

from collections.abc import Sequence

from vit_plugin.arguments.fields import Count, Positive, PositiveInt, Section
from vit_plugin.weights.foreign_config import ForeignConfig
from vit_plugin.weights.published import Published
from vit_plugin.weights.published_settings import detector_settings
from vit_plugin.weights.transformers_config import inner_backbone

from .d_fine_kinds import D_FINE_KIND, HGNET_L, HGNET_V2_KIND
from .published_fine_head import attention_heads, convert_fine_head
from .published_hgnet import convert_hgnet

PUBLISHED_SIDE = 640  # pixels; side of the images, if a folder has no processor
# transformers' names of activations -> ours.
ACTIVATION_TYPES = {'silu': 'SiLU', 'swish': 'SiLU', 'relu': 'ReLU', 'gelu': 'GELU'}


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
        num_heads=attention_heads(config, 'encoder_attention_heads', dims),
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
