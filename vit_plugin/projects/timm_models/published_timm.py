"""Read a folder of timm (``timm.models.save_for_hf``) as a config of the same model here.

If our :class:`VisionTransformer` does not compute the model, a :class:`TimmBackbone` wraps timm's
own module. Each entry of the ``config.json`` must be read, required to have a supported value, or
ignored since it has no effect. Any other entry is an error, see
:class:`~vit_plugin.weights.foreign_config.ForeignConfig`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from mmengine.logging import print_log
from timm.layers import SwiGLUPacked, to_2tuple
from timm.models import PretrainedCfg, get_pretrained_cfg
from torch import Tensor, nn

from vit_plugin.arguments import fits
from vit_plugin.arguments.fields import Section
from vit_plugin.errors import ConfigError
from vit_plugin.weights.foreign_config import ForeignConfig
from vit_plugin.weights.published import Published
from vit_plugin.weights.published_settings import classifier_settings
from vit_plugin.weights.published_wrapped import wrapped_run, wrapped_weights
from vit_plugin.weights.reading.lazy import Weights
from vit_plugin.weights.traits import is_gated
from vit_plugin.zoo import describe
from vit_plugin.zoo.definition import pooling_of
from vit_plugin.zoo.feature_maps import map_pooling

from .published_pretrained_cfg import (
    TIMM_WRAPPER_CLASSIFIER,
    TIMM_WRAPPER_ENCODER,
    InputSize,
    preprocessing,
    timm_class_names,
)
from .timm_backbone import TimmBackbone
from .timm_kinds import NOT_MODEL_ARGS, PRETRAINED_KIND, TIMM_KIND, TRAINING_ARGS
from .wrapped_timm import SCHEME, timm_arguments

# Our names of the classifiers on the class token and on the distillation token.
LINEAR_WEIGHT, DISTILLED_WEIGHT = 'head.layers.head.weight', 'head.layers.head_dist.weight'
# The entries of `describe` that make up the argument `arch`.
ARCH_FIELDS = ('embed_dims', 'num_layers', 'num_heads', 'feedforward_channels')
ArgumentValue = bool | int | float | str | None
# Limits of numeric arguments and of the number of blocks, so that a hostile file cannot build
# anything large.
MAX_ARGUMENT, MAX_BLOCKS = 65_536, 1000


def timm_folder(
    published: Published,
) -> tuple[Section, list[str]] | tuple[Section, list[str], Weights] | None:
    """The config of a classifier and its classes, or of an encoder and no classes.

    For a model that timm computes, its weights are the third item. Returns None for any other
    folder.

    Raises:
        ConfigError: if it is a model that neither :class:`~vit_plugin.models.VisionTransformer` nor
            :class:`~.timm_backbone.TimmBackbone` computes.
    """
    # A name alone has no config.json, so timm's own metadata takes its place.
    if published.source.startswith(SCHEME) and timm_arguments(published.source, {}):
        published.config = _config_by_name(published.source.removeprefix(SCHEME))
    name = published.config.get('architecture')
    if not isinstance(name, str) or published.model_type not in ('', 'timm_wrapper'):
        return None
    config = published.described_by(TIMM_KIND, TIMM_WRAPPER_CLASSIFIER, TIMM_WRAPPER_ENCODER)
    if config is None:
        return None
    config.ignore('architectures', 'architecture', 'do_pooling')
    pretrained_cfg = config  # older files have its entries at the top
    if 'pretrained_cfg' in published.config:
        pretrained_cfg = config.part('pretrained_cfg', {'': PRETRAINED_KIND}, {})
        pretrained_cfg.ignore('architecture')  # timm takes the one in `config`
    config.ignore('pretrained_cfg')
    options = _model_args(config, pretrained_cfg)
    if arguments := timm_arguments('', published.config):
        arguments['out_type'] = 'pooled'
        return _wrapped_folder(published, arguments, options, config, pretrained_cfg)
    model = _vit_model(published, name, options)
    if 'neck.norm.weight' in published.ours and 'norm_cfg' not in model.get('neck', {}):
        why = 'whose norm after this pooling no model here has'
        raise config.unsupported('model_args', why=why)
    num_rows = published.shape(LINEAR_WEIGHT)[0] if LINEAR_WEIGHT in published.ours else 0
    classes = timm_class_names(num_rows, config, pretrained_cfg)
    if classes:
        width = published.shape(LINEAR_WEIGHT)[1]
        model['head'] = dict(
            type='vit_plugin.ViTClsHead', num_classes=len(classes), in_channels=width
        )
        if DISTILLED_WEIGHT in published.ours:
            model['backbone']['out_type'] = 'raw'  # the head takes both tokens
            model['head'] |= dict(type='vit_plugin.DistilledViTClsHead', distillation='none')
    return classifier_settings(model, classes, *preprocessing(pretrained_cfg)), classes


def _vit_model(published: Published, name: str, options: Section) -> Section:
    """The model that our :class:`VisionTransformer` computes, without a head.

    Args:
        published: the folder.
        name: timm's name of the model.
        options: see :func:`_model_args`.
    """
    described = describe(name, **options)
    if is_gated(published.ours) and not described['arguments']['encoder'].get('gated_mlp'):
        # The model cards of UNI 2 and Virchow 2 pass these classes to timm.
        options = dict(options, mlp_layer=SwiGLUPacked, act_layer=nn.SiLU)
        described = describe(name, **options)
        print_log(
            f'{published.source} has gated MLPs, which its config.json does not name: SwiGLU is '
            'assumed, so its activation is SiLU.',
            'current',
        )
    backbone: Section = dict(
        described['arguments'],
        type='vit_plugin.VisionTransformer',
        arch={key: described[key] for key in ARCH_FIELDS},
        patch_embed=described['patch_embed'],
    )
    model: Section = dict(type='ImageClassifier', backbone=backbone)
    pooling = pooling_of(name, **options)
    if pooling is not None:
        backbone['out_type'], model['neck'] = pooling
    return model


def _config_by_name(name: str) -> Section:
    """The ``config.json`` of a model by its name, with timm's own weights."""
    pretrained_cfg = (get_pretrained_cfg(name) or PretrainedCfg()).to_dict(remove_source=True)
    pretrained_cfg.pop('architecture', None)
    return dict(architecture=name, pretrained_cfg=pretrained_cfg)


def _wrapped_folder(
    published: Published,
    arguments: Section,
    options: Section,
    config: ForeignConfig,
    pretrained_cfg: ForeignConfig,
) -> tuple[Section, list[str], Weights]:
    """The config of a model that timm computes, its classes and its weights.

    Args:
        published: the folder.
        arguments: those of the ``TimmBackbone``.
        options: see :func:`_model_args`.
        config: the ``config.json``.
        pretrained_cfg: the entry ``pretrained_cfg`` of ``config``, or ``config``.
    """
    with torch.device('meta'):
        backbone = TimmBackbone(**arguments)
        # The size that is stated, if the model takes only one.
        size = to_2tuple(options.get('img_size', backbone.img_size))
        if size != tuple(backbone.img_size):
            arguments = dict(arguments, img_size=size)
            backbone = TimmBackbone(**arguments)
    pooling, built = options.get('global_pool'), map_pooling(backbone.model)
    if pooling not in (None, built):
        raise config.unsupported('model_args', why=f'where TimmBackbone pools by {built!r}')
    classifier = str(backbone.model.pretrained_cfg['classifier'])
    has_head = f'{classifier}.weight' in published.weights

    def load() -> Mapping[str, Tensor]:
        loaded = TimmBackbone(**arguments)
        loaded.load(published.weights)
        return loaded.state_dict()

    num_rows = published.shape(f'{classifier}.weight')[0] if has_head else 0
    classifiers = [classifier] if has_head else []
    return wrapped_run(
        dict(arguments, type='vit_plugin.TimmBackbone'),
        backbone.embed_dims,
        timm_class_names(num_rows, config, pretrained_cfg),
        preprocessing(pretrained_cfg),
        wrapped_weights([*backbone.state_dict()], load, published.weights, classifiers),
    )


def _model_args(config: ForeignConfig, pretrained_cfg: ForeignConfig) -> Section:
    """The arguments with which timm builds the model, without those that only affect training.

    They are found like in timm's ``_update_default_model_kwargs``.

    Raises:
        ConfigError: for an argument that is unsafe or no argument of a model, or if the images do
            not have 3 channels.
    """
    model_args = config.get('model_args', Mapping[str, Any] | None) or {}
    options: Section = {}
    for name, value in model_args.items():
        values = value if isinstance(value, (list, tuple)) else [value]
        limit = MAX_BLOCKS if name == 'depth' else MAX_ARGUMENT
        if (
            name in NOT_MODEL_ARGS
            or not fits(Sequence[ArgumentValue], values)
            or any(isinstance(item, (int, float)) and item > limit for item in values)
        ):
            raise ConfigError(
                f'its config.json has model_args.{name}={value!r}, which is not an argument of a '
                'model; leave it out'
            )
        if name not in TRAINING_ARGS:
            options[name] = tuple(value) if isinstance(value, (list, tuple)) else value
    size = pretrained_cfg.get('input_size', InputSize)
    if options.get('in_chans', size[0]) != 3:
        raise pretrained_cfg.unsupported('input_size', why='and images here have 3 channels')
    if pretrained_cfg['fixed_input_size']:
        options.setdefault('img_size', tuple(size[1:]))
    # The entry in `pretrained_cfg` applies; the one next to it is only informative.
    pooling = pretrained_cfg.get('global_pool', str | None)
    if pooling is not None:
        options.setdefault('global_pool', pooling)
    config.ignore('global_pool')
    options.pop('num_classes', None)  # compared with the weights in `timm_class_names`
    return options
