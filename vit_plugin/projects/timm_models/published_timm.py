"""Read a folder of timm (``timm.models.save_for_hf``) as a config of the same model here."""

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import torch
from annotated_types import Len
from timm.models import PretrainedCfg, get_pretrained_cfg
from torch import Tensor

from vit_plugin.arguments import fits
from vit_plugin.arguments.fields import Fraction, Numbers, PositiveInt, Section
from vit_plugin.errors import ConfigError
from vit_plugin.weights.foreign_config import ForeignConfig
from vit_plugin.weights.published import Published
from vit_plugin.weights.published_settings import classifier_settings, imagenet_names
from vit_plugin.weights.published_wrapped import wrapped_run, wrapped_weights
from vit_plugin.weights.reading.lazy import Weights
from vit_plugin.zoo import describe
from vit_plugin.zoo.definition import pooling_of
from vit_plugin.zoo.feature_maps import map_pooling

from .timm_backbone import TimmBackbone
from .timm_kinds import NOT_MODEL_ARGS, PRETRAINED_KIND, TIMM_KIND, TRAINING_ARGS
from .wrapped_timm import SCHEME, wrapped_timm

LINEAR_WEIGHT, DISTILLED_WEIGHT = 'head.layers.head.weight', 'head.layers.head_dist.weight'
ARCH_FIELDS = ('embed_dims', 'num_layers', 'num_heads', 'feedforward_channels')
Value = bool | int | float | str | None
InputSize = Annotated[Sequence[PositiveInt], Len(3, 3)]
Labels = Sequence[str] | Mapping[str, str] | None
# Limit of numeric arguments, so that a hostile file cannot build anything large.
MAX_ARGUMENT = 65_536


def timm_folder(
    published: Published,
) -> tuple[Section, list[str]] | tuple[Section, list[str], Weights] | None:
    """The config of a classifier and its classes, or of an encoder. None if it is another folder.

    For a model that timm computes, its weights are the third item.

    Raises:
        ConfigError: if it is a model that neither :class:`~vit_plugin.models.VisionTransformer` nor
            :class:`~.timm_backbone.TimmBackbone` computes.
    """
    if published.source.startswith(SCHEME) and wrapped_timm(published.source, {}):
        published.config = _config_of(published.source.removeprefix(SCHEME))
    name = published.config.get('architecture')
    if not isinstance(name, str) or published.kind not in ('', 'timm_wrapper'):
        return None
    config = published.described_by(TIMM_KIND)
    if config is None:
        return None
    config.ignore('architectures', 'architecture', 'do_pooling')
    pixels = config
    if 'pretrained_cfg' in published.config:
        pixels = config.part('pretrained_cfg', {'': PRETRAINED_KIND}, {})
    config.ignore('pretrained_cfg')
    options = _options(config, pixels)
    if arguments := wrapped_timm('', published.config):
        arguments['out_type'] = 'pooled'
        return _wrapped_folder(published, arguments, options, config, pixels)
    described, pooling = describe(name, **options), pooling_of(name, **options)
    backbone: Section = dict(
        described['arguments'],
        type='vit_plugin.VisionTransformer',
        arch={key: described[key] for key in ARCH_FIELDS},
        patch_embed=described['patch_embed'],
    )
    model: Section = dict(type='ImageClassifier', backbone=backbone)
    if pooling is not None:
        backbone['out_type'], model['neck'] = pooling
    rows = published.shape(LINEAR_WEIGHT)[0] if LINEAR_WEIGHT in published.ours else 0
    classes = _classes(rows, config, pixels)
    if classes:
        width = published.shape(LINEAR_WEIGHT)[1]
        model['head'] = dict(
            type='vit_plugin.ViTClsHead', num_classes=len(classes), in_channels=width
        )
        if DISTILLED_WEIGHT in published.ours:
            backbone['out_type'] = 'raw'
            model['head'] |= dict(type='vit_plugin.DistilledViTClsHead', distillation='none')
    return classifier_settings(model, classes, *_pixels(pixels)), classes


def _config_of(name: str) -> Section:
    """The ``config.json`` of a model by its name, with timm's own weights."""
    pixels = (get_pretrained_cfg(name) or PretrainedCfg()).to_dict(remove_source=True)
    pixels.pop('architecture', None)
    return dict(architecture=name, pretrained_cfg=pixels)


def _wrapped_folder(
    published: Published,
    arguments: Section,
    options: Section,
    config: ForeignConfig,
    pixels: ForeignConfig,
) -> tuple[Section, list[str], Weights]:
    """The config of a model that timm computes, its classes and its weights."""
    with torch.device('meta'):
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

    rows = published.shape(f'{classifier}.weight')[0] if has_head else 0
    classifiers = [classifier] if has_head else []
    return wrapped_run(
        dict(arguments, type='vit_plugin.TimmBackbone'),
        backbone.embed_dims,
        _classes(rows, config, pixels),
        _pixels(pixels),
        wrapped_weights([*backbone.state_dict()], load, published.weights, classifiers),
    )


def _options(config: ForeignConfig, pixels: ForeignConfig) -> Section:
    """The arguments with which timm builds the model, by ``_update_default_model_kwargs``."""
    model_args = config.get('model_args', Mapping[str, Any] | None) or {}
    options: Section = {}
    for name, value in model_args.items():
        values = value if isinstance(value, (list, tuple)) else [value]
        if (
            name in NOT_MODEL_ARGS
            or not fits(Sequence[Value], values)
            or any(isinstance(item, (int, float)) and item > MAX_ARGUMENT for item in values)
        ):
            raise ConfigError(
                f'its config.json has model_args.{name}={value!r}, which is not an argument of a '
                'model; leave it out'
            )
        if name not in TRAINING_ARGS:
            options[name] = tuple(value) if isinstance(value, (list, tuple)) else value
    size = pixels.get('input_size', InputSize)
    if options.get('in_chans', size[0]) != 3:
        raise pixels.unsupported('input_size', why='and images here have 3 channels')
    if pixels['fixed_input_size']:
        options.setdefault('img_size', tuple(size[1:]))
    # The entry in `pretrained_cfg` applies; the one next to it is only informative.
    pooling = pixels.get('global_pool', str | None)
    if pooling is not None:
        options.setdefault('global_pool', pooling)
    config.ignore('global_pool')
    options.pop('num_classes', None)
    return options


def _classes(rows: int, config: ForeignConfig, pixels: ForeignConfig) -> list[str]:
    """The class names of a classifier with this number of rows; empty for 0 rows.

    They are descriptions if there are any, else names, else numbers.
    """
    pixels.require('label_offset', None, 0)
    pixels.require('custom_load', False)
    count = config.get('num_classes', int | None)
    pretrained_count = pixels.get('num_classes', int | None)
    count = pretrained_count if count is None else count
    if count is not None and count != rows:
        raise config.unsupported('num_classes', why=f'where its classifier has {rows} rows')
    names = config.get('label_names', Labels) or pixels.get('label_names', Labels)
    names = names or config.get('labels', Labels) or pixels.get('labels', Labels)
    descriptions = config.get('label_descriptions', Mapping[str, str] | None)
    descriptions = descriptions or pixels.get('label_descriptions', Mapping[str, str] | None) or {}
    if isinstance(names, Mapping):
        names = [names.get(str(i), f'class {i}') for i in range(rows)]
    if names and len(names) != rows:
        raise config.unsupported('label_names', why=f'where its classifier has {rows} rows')
    if names:
        return [descriptions.get(name, name) for name in names]
    return imagenet_names(rows) or [f'class {i}' for i in range(rows)]


def _pixels(pixels: ForeignConfig) -> tuple[list[Section], Section]:
    """The test transforms and the normalization, see :func:`classifier_settings`."""
    colors = {
        name: [255 * value for value in pixels.get(name, Numbers)] for name in ('mean', 'std')
    }
    return _steps(pixels), colors


def _steps(pixels: ForeignConfig) -> list[Section]:
    """The steps of timm's test transform, see ``timm.data.create_transform``."""
    _, height, width = pixels.get('input_size', InputSize)
    crop_pct, mode = pixels.get('crop_pct', Fraction), pixels.get('crop_mode', str)
    method = dict(interpolation=pixels.get('interpolation', str), backend='pillow')
    larger = [math.floor(side / crop_pct) for side in (height, width)]
    if mode == 'squash':
        resize = dict(type='Resize', scale=(larger[1], larger[0]), **method)
    elif mode == 'center' and height == width:
        resize = dict(type='ResizeEdge', scale=larger[0], edge='short', **method)
    else:
        raise pixels.unsupported('crop_mode', 'input_size')
    is_whole = mode == 'squash' and larger == [height, width]
    return [resize] if is_whole else [resize, dict(type='CenterCrop', crop_size=(width, height))]
