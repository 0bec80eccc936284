"""Build the config of an image encoder or classifier in the format of transformers.

The ``config.json`` and the weights must agree, and the reader reads, requires or ignores each field
of the config, since unread fields are an error, see
:class:`~vit_plugin.weights.foreign_config.ForeignConfig`. The supported models are in
:mod:`~vit_plugin.weights.image_kinds`.
"""

from vit_plugin.arguments.fields import Section
from vit_plugin.errors import ConfigError

from .encoder_kinds import MAP_FIELDS
from .foreign_config import ForeignConfig
from .image_kinds import (
    FIRST_NORM,
    IMAGE_KINDS,
    REGISTER_KEY,
    SCALE,
    SECOND_TOKEN,
    STEM_BIAS_KEY,
    STEM_NORM,
    TOKEN_KEY,
    VARYING_PARTS,
    ImageKind,
    Pooling,
)
from .processor_pixels import processor_pixels
from .published import Published
from .published_encoder import encoder_section, height_width
from .published_positions import position_section
from .published_settings import class_names, classifier_settings

HEAD_WEIGHT, ATTENTION_POOL = 'head.layers.head.weight', 'neck.attn_pool.latent'
POOL_NORM = 'neck.norm.weight'
MASKED_MODEL_ENDING = 'ForMaskedImageModeling'


def image_model(published: Published) -> tuple[Section, list[str]] | None:
    """The config of a classifier and its classes, or of an encoder. None if it is another model.

    Raises:
        ConfigError: if our backbone cannot compute it.
    """
    kind = IMAGE_KINDS.get(published.model_type)
    if kind is None:
        return None
    config = published.described_by(kind.towers or kind.config, *kind.poolings)
    if config is None:
        return None
    name = _class_of(published, kind)
    classifies, tower = 'Classification' in name, _tower(kind, config)
    tower.ignore(*MAP_FIELDS)  # fields of another class, a backbone for feature maps
    uses_mean = tower.may_have('use_mean_pooling') and tower['use_mean_pooling']
    pooling = kind.pooling(name, uses_mean)
    backbone = _backbone(published, kind, tower, name)
    model: Section = dict(type='ImageClassifier')
    _pool(published, pooling, classifies, backbone, model)
    classes: list[str] = []
    if classifies:
        rows, width = published.shape(HEAD_WEIGHT)
        classes = class_names(published, rows)
        model['head'] = dict(
            type='vit_plugin.ViTClsHead', num_classes=len(classes), in_channels=width
        )
        if pooling == 'distilled':
            model['head'] |= dict(type='vit_plugin.DistilledViTClsHead', distillation='none')
    size = height_width(backbone['img_size'])
    steps, colors = processor_pixels(published.processor, kind.processor, size)
    return classifier_settings(model, classes, steps, colors), classes


def _class_of(published: Published, kind: ImageKind) -> str:
    """The class of transformers, from ``architectures`` or else from the weights."""
    stated = published.config.get('architectures') or ()
    classifies = HEAD_WEIGHT in published.ours
    possible = [name for name in kind.poolings if ('Classification' in name) == classifies]
    return [*stated, *possible][0]


def _tower(kind: ImageKind, config: ForeignConfig) -> ForeignConfig:
    """The config of the image encoder, which may be nested in that of a model with text."""
    if kind.towers is None:
        return config
    # Files of 2022 have the config twice, and transformers uses the second one.
    has_both = config.content.get('vision_config_dict') is not None
    config.ignore('vision_config', 'vision_config_dict')
    tower = config.part(
        'vision_config_dict' if has_both else 'vision_config',
        {config.content.get('model_type', '') + '_vision_model': kind.config},
        {},
    )
    tower.ignore('architectures')
    return tower


def _backbone(published: Published, kind: ImageKind, config: ForeignConfig, name: str) -> Section:
    """The config of a :class:`~vit_plugin.models.VisionTransformer`, except ``out_type``.

    Args:
        published: the checkpoint.
        kind: the models with its ``model_type``.
        config: the config of the encoder.
        name: the class of transformers.
    """
    _check_parts(published, kind, config)
    backbone = encoder_section(published, config, has_square_table=kind.has_square_table)
    options: Section = backbone['encoder']
    if STEM_BIAS_KEY not in published.ours:
        backbone['patch_embed'] = dict(bias=False)
    if STEM_NORM in published.ours:  # AIMv2, whose norms are RMSNorms
        norm = dict(type='RMSN', eps=backbone['numerics']['norm_cfg']['eps'])
        backbone['numerics']['norm_cfg'] = norm
        backbone.setdefault('patch_embed', {})['norm_cfg'] = dict(norm)
    has_pool = ATTENTION_POOL in published.ours
    config.check_agreement(vision_use_head=has_pool, use_head=has_pool)
    options['pre_norm'] = FIRST_NORM in published.ours
    options['final_norm'] = name not in kind.unnormed and not _norm_follows_pooling(
        published, config, name
    )
    if not options['final_norm']:
        published.unused.add('norm.')
    if SECOND_TOKEN in published.ours:
        options['dist_token'] = 1
    return dict(
        backbone,
        type='vit_plugin.VisionTransformer',
        pos_embed=position_section(published, kind, config, backbone),
        with_cls_token=TOKEN_KEY in published.ours,
    )


def _norm_follows_pooling(published: Published, config: ForeignConfig, name: str) -> bool:
    """True if the norm follows the average of the patches, as in BEiT.

    Raises:
        ConfigError: if the config contradicts the weights.
    """
    if not config.may_have('use_mean_pooling'):
        return False
    if name.endswith(MASKED_MODEL_ENDING):
        config.require('use_mean_pooling', True)
        return False
    uses_mean, has_norm = bool(config['use_mean_pooling']), POOL_NORM in published.ours
    # A Data2VecVisionModel that averages has no norm, neither before nor after it.
    if uses_mean != has_norm and (has_norm or 'Classification' in name):
        raise config.unsupported('use_mean_pooling', why='but its weights show the opposite')
    return uses_mean


def _check_parts(published: Published, kind: ImageKind, config: ForeignConfig) -> None:
    """Raise a ``ConfigError`` if the weights have modules that their kind lacks, or vice versa."""
    actual = {part for part in VARYING_PARTS if part in published.ours} - kind.optional_parts
    if config.may_have('num_register_tokens'):
        actual -= {REGISTER_KEY}
    scale = 'layer_scale_init_value'
    if config.may_have(scale) and (config.get(scale, float) > 0) != (SCALE in published.ours):
        raise config.unsupported(scale, why='but its weights show the opposite')
    for parts, verb in (
        (actual - kind.required_parts, 'have'),
        (kind.required_parts - actual, 'lack'),
    ):
        if parts:
            raise ConfigError(
                f'its weights {verb} {min(parts)}, unlike each model of '
                f'model_type={published.model_type!r}; give the complete folder of one model'
            )


def _pool(
    published: Published, pooling: Pooling, classifies: bool, backbone: Section, model: Section
) -> None:
    """Add the backbone with its ``out_type``, and the neck that pools its tokens, to the model.

    Weights of modules that the model then lacks are marked as unused.

    Args:
        published: the checkpoint.
        pooling: how the class of transformers pools.
        classifies: whether the model is a classifier, and not only an encoder.
        backbone: the config of the backbone, which gets its ``out_type``.
        model: the config of the model, which gets ``backbone`` and maybe ``neck``.
    """
    width, options = backbone['arch']['embed_dims'], backbone['encoder']
    model['backbone'] = backbone
    neck = dict(type='vit_plugin.TokenPooling', in_channels=width)
    class_tokens = 1 if backbone['with_cls_token'] else 0
    prefix = class_tokens + options.get('dist_token', 0) + options['reg_token']
    if not classifies:
        published.unused.add('head.')  # a pooler, or part of a decoder
    if not options['reg_token']:
        published.unused.add('reg_token')  # a Pixio with one class token has no registers
    if pooling == 'map' and ATTENTION_POOL not in published.ours:
        pooling = 'avg'  # the pooling without use_head
    out_types = {'cls': 'cls_token', 'avg': 'avg_featmap'}
    if pooling == 'map':
        model['neck'] = dict(neck, mode='map', map_cfg=_attention_pool(published, backbone))
    elif pooling == 'avg' and POOL_NORM in published.ours:
        model['neck'] = dict(neck, mode='avg', norm_cfg=_norm_of(backbone))
        out_types['avg'] = 'featmap'
    elif pooling in ('cls_avg', 'prefix'):
        model['neck'] = dict(neck, mode=pooling, num_prefix_tokens=prefix)
    if 'norm_cfg' not in model.get('neck', {}) and pooling != 'map':
        published.unused.add('neck.')
    backbone['out_type'] = out_types.get(pooling, 'raw')


def _norm_of(backbone: Section) -> Section:
    """The ``norm_cfg`` of the encoder, with its type."""
    return dict(dict(type='LN'), **backbone['numerics']['norm_cfg'])


def _attention_pool(published: Published, backbone: Section) -> Section:
    """The arguments of attention pooling, some of them from the weights."""
    prefix, mlp = 'neck.attn_pool.', 'neck.attn_pool.mlp.fc1.weight'
    arguments = dict(
        num_heads=backbone['arch']['num_heads'],
        feedforward_channels=published.shape(mlp)[0] if mlp in published.ours else 0,
        numerics={name: backbone['numerics'][name] for name in ('base', 'act_cfg', 'norm_cfg')},
    )
    for option, part in (('query_proj', 'q.weight'), ('qkv_bias', 'kv.bias')):
        if f'{prefix}{part}' not in published.ours:
            arguments[option] = False
    return arguments
