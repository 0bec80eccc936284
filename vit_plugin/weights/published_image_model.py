"""Configs for image encoders and classifiers in the format of transformers."""

from typing import Any

from vit_plugin.arguments.fields import Section
from vit_plugin.errors import ConfigError

from .encoder_kinds import MAP_FIELDS
from .foreign_config import ForeignConfig
from .image_kinds import IMAGE_KINDS, OPTIONAL_PARTS, REGISTER_KEY, ImageKind, Pooling
from .processor_pixels import processor_pixels
from .published import Published
from .published_encoder import dinov3_rotary, encoder_section
from .published_settings import class_names, classifier_settings

HEAD_WEIGHT, ATTENTION_POOL = 'head.layers.head.weight', 'neck.attn_pool.latent'


def image_model(published: Published) -> tuple[Section, list[str]] | None:
    """The config of a classifier and its classes, or of an encoder. None if it is another model.

    Raises:
        ConfigError: if it is one that ours does not compute.
    """
    kind = IMAGE_KINDS.get(published.kind)
    if kind is None:
        return None
    whole = published.described_by(kind.towers or kind.config, *kind.poolings)
    if whole is None:
        return None
    name = _class_of(published, kind)
    pooling, classifies = kind.poolings[name], 'Classification' in name
    tower = _tower(kind, whole)
    tower.leave(*MAP_FIELDS)  # fields of a backbone for maps, another class
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
    side = backbone['img_size']
    sides = (side, side) if isinstance(side, int) else tuple(side)
    steps, colors = processor_pixels(published.processor, kind.processor, sides)
    return classifier_settings(model, classes, steps, colors), classes


def _class_of(published: Published, kind: ImageKind) -> str:
    """The class of transformers: that in ``architectures``, else the one that the weights show."""
    named = published.config.get('architectures') or ()
    classifies = HEAD_WEIGHT in published.ours
    usual = [name for name in kind.poolings if ('Classification' in name) == classifies]
    return next(iter([*named, *usual]))


def _tower(kind: ImageKind, whole: ForeignConfig) -> ForeignConfig:
    """The config of the encoder, which may be a part of another one."""
    if kind.towers is None:
        return whole
    # Files of 2022 have the same twice, and the second one counts in transformers' code.
    older = whole.content.get('vision_config_dict') is not None
    whole.leave('vision_config', 'vision_config_dict')
    part = whole.part(
        'vision_config_dict' if older else 'vision_config',
        {whole.content.get('model_type', '') + '_vision_model': kind.config},
        {},
    )
    part.leave('architectures')
    return part


def _backbone(published: Published, kind: ImageKind, config: ForeignConfig, name: str) -> Section:
    """The arguments of a :class:`~vit_plugin.models.VisionTransformer` but ``out_type``."""
    _check_parts(published, kind, config)
    backbone = encoder_section(published, config, square=kind.is_square)
    options: Section = backbone['encoder']
    positions: dict[str, Any] = dict(type='learned', interpolate_mode=kind.interpolate_mode)
    size = backbone['img_size']
    if not isinstance(size, int):
        patch = backbone['arch']['patch_size']
        positions['source_grid'] = [side // patch for side in size]
    if 'patch_embed.proj.bias' not in published.ours:
        backbone['patch_embed'] = dict(bias=False)
    if 'patch_embed.norm.weight' in published.ours:  # an AIMv2, whose norms are RMSNorms
        norm = dict(type='RMSN', eps=backbone['numerics']['norm_cfg']['eps'])
        backbone['numerics']['norm_cfg'] = norm
        backbone.setdefault('patch_embed', {})['norm_cfg'] = dict(norm)
        config.only('use_head', False)
        config.only('is_native', False)
    config.agree(vision_use_head=ATTENTION_POOL in published.ours)
    options['pre_norm'] = 'norm_pre.weight' in published.ours
    options['final_norm'] = name not in kind.unnormed
    if not options['final_norm']:
        published.unused.add('norm.')
    if dist := 'dist_token' in published.ours:
        options['dist_token'] = int(dist)
    return dict(
        backbone,
        type='vit_plugin.VisionTransformer',
        pos_embed=positions if kind.interpolate_mode else dinov3_rotary(config),
        with_cls_token='cls_token' in published.ours,
    )


def _check_parts(published: Published, kind: ImageKind, config: ForeignConfig) -> None:
    """Raise a ``ConfigError`` if the weights have other parts than each model of their kind."""
    found = {part for part in OPTIONAL_PARTS if part in published.ours}
    if config.may_have('num_register_tokens'):
        found -= {REGISTER_KEY}
    for parts, what in ((found - kind.parts, 'have'), (kind.parts - found, 'lack')):
        if parts:
            raise ConfigError(
                f'its weights {what} {min(parts)}, unlike each model of '
                f'model_type={published.kind!r}; give the complete folder of one model'
            )


def _pool(
    published: Published, pooling: Pooling, classifies: bool, backbone: Section, model: Section
) -> None:
    """Add the ``out_type`` of the backbone, and the neck that pools its tokens."""
    width, options = backbone['arch']['embed_dims'], backbone['encoder']
    model['backbone'] = backbone
    neck = dict(type='vit_plugin.TokenPooling', in_channels=width)
    prefix = backbone['with_cls_token'] + options.get('dist_token', 0) + options['reg_token']
    if not classifies:
        published.unused.add('head.')  # a pooler, or what a decoder has
    if pooling == 'map' and ATTENTION_POOL not in published.ours:
        pooling = 'avg'  # a SigLIP with vision_use_head=False
    elif pooling != 'map':
        published.unused.add('neck.')
    if pooling == 'map':
        numerics = {name: backbone['numerics'][name] for name in ('base', 'act_cfg', 'norm_cfg')}
        hidden = published.shape('neck.attn_pool.mlp.fc1.weight')[0]
        heads = backbone['arch']['num_heads']
        options_of_map = dict(num_heads=heads, feedforward_channels=hidden, numerics=numerics)
        model['neck'] = dict(neck, mode='map', map_cfg=options_of_map)
    elif pooling == 'cls_avg':
        model['neck'] = dict(neck, mode='cls_avg', num_prefix_tokens=prefix)
    backbone['out_type'] = {'cls': 'cls_token', 'avg': 'avg_featmap'}.get(pooling, 'raw')
