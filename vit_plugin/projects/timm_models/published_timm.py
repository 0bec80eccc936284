"""A folder that timm writes (``timm.models.save_for_hf``) as a config of the same model here."""

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from annotated_types import Len

from vit_plugin.arguments import fits
from vit_plugin.arguments.fields import Fraction, Numbers, PositiveInt, Section
from vit_plugin.errors import ConfigError
from vit_plugin.weights.foreign_config import ForeignConfig
from vit_plugin.weights.published import Published
from vit_plugin.weights.published_settings import classifier_settings, imagenet_names
from vit_plugin.zoo import describe
from vit_plugin.zoo.definition import pooled

from .timm_kinds import NOT_MODEL_ARGS, OF_TRAINING, PRETRAINED, TIMM

HEAD, SECOND = 'head.layers.head.weight', 'head.layers.head_dist.weight'
SIZES = ('embed_dims', 'num_layers', 'num_heads', 'feedforward_channels')
Value = bool | int | float | str | None
InputSize = Annotated[Sequence[PositiveInt], Len(3, 3)]
Labels = Sequence[str] | Mapping[str, str] | None
MOST = 65_536  # of a number in the arguments, so that a hostile file builds nothing large


def timm_folder(published: Published) -> tuple[Section, list[str]] | None:
    """The config of a classifier and its classes, or of an encoder. None if it is another folder.

    Raises:
        ConfigError: if it is a model that :class:`~vit_plugin.models.VisionTransformer` does not
            compute.
    """
    name = published.config.get('architecture')
    if not isinstance(name, str) or published.kind not in ('', 'timm_wrapper'):
        return None
    config = published.described_by(TIMM)
    if config is None:
        return None
    config.leave('architectures', 'architecture', 'do_pooling')
    pixels = config
    if 'pretrained_cfg' in published.config:
        pixels = config.part('pretrained_cfg', {'': PRETRAINED}, {})
    config.leave('pretrained_cfg')
    options = _options(config, pixels)
    described, pooling = describe(name, **options), pooled(name, **options)
    backbone: Section = dict(
        described['arguments'],
        type='vit_plugin.VisionTransformer',
        arch={key: described[key] for key in SIZES},
        patch_embed=described['patch_embed'],
    )
    model: Section = dict(type='ImageClassifier', backbone=backbone)
    if pooling is not None:
        backbone['out_type'], model['neck'] = pooling
    classes = _classes(published, config, pixels)
    if classes:
        width = published.shape(HEAD)[1]
        model['head'] = dict(
            type='vit_plugin.ViTClsHead', num_classes=len(classes), in_channels=width
        )
        if SECOND in published.ours:
            backbone['out_type'] = 'raw'
            model['head'] |= dict(type='vit_plugin.DistilledViTClsHead', distillation='none')
    steps = _steps(pixels)
    mean, std = pixels.get('mean', Numbers), pixels.get('std', Numbers)
    colors = {'mean': [255 * value for value in mean], 'std': [255 * value for value in std]}
    return classifier_settings(model, classes, steps, colors), classes


def _options(config: ForeignConfig, pixels: ForeignConfig) -> Section:
    """The arguments with which timm builds the model, by ``_update_default_model_kwargs``."""
    given = config.get('model_args', Mapping[str, Any] | None) or {}
    options: Section = {}
    for name, value in given.items():
        single = value if isinstance(value, (list, tuple)) else [value]
        if (
            name in NOT_MODEL_ARGS
            or not fits(Sequence[Value], single)
            or any(isinstance(one, (int, float)) and one > MOST for one in single)
        ):
            raise ConfigError(
                f'its config.json has model_args.{name}={value!r}, which is no argument of a '
                'model; leave it out'
            )
        if name not in OF_TRAINING:
            options[name] = tuple(value) if isinstance(value, (list, tuple)) else value
    size = pixels.get('input_size', InputSize)
    if options.get('in_chans', size[0]) != 3:
        raise pixels.refuse('input_size', why='and images here have 3 channels')
    if pixels['fixed_input_size']:
        options.setdefault('img_size', tuple(size[1:]))
    # That of `pretrained_cfg` counts, and that beside it is for information alone.
    pooling = pixels.get('global_pool', str | None)
    if pooling is not None:
        options.setdefault('global_pool', pooling)
    config.leave('global_pool')
    options.pop('num_classes', None)
    return options


def _classes(published: Published, config: ForeignConfig, pixels: ForeignConfig) -> list[str]:
    """The names of the classes: descriptions where there are some, else names, else numbers."""
    pixels.only('label_offset', None, 0)
    pixels.only('custom_load', False)
    count = config.get('num_classes', int | None)
    inner = pixels.get('num_classes', int | None)
    rows = published.shape(HEAD)[0] if HEAD in published.ours else 0
    count = inner if count is None else count
    if count is not None and count != rows:
        raise config.refuse('num_classes', why=f'where its classifier has {rows} rows')
    names = config.get('label_names', Labels) or pixels.get('label_names', Labels)
    names = names or config.get('labels', Labels) or pixels.get('labels', Labels)
    said = config.get('label_descriptions', Mapping[str, str] | None)
    said = said or pixels.get('label_descriptions', Mapping[str, str] | None) or {}
    if isinstance(names, Mapping):
        names = [names.get(str(i), f'class {i}') for i in range(rows)]
    if names and len(names) != rows:
        raise config.refuse('label_names', why=f'where its classifier has {rows} rows')
    if names:
        return [said.get(name, name) for name in names]
    return imagenet_names(rows) or [f'class {i}' for i in range(rows)]


def _steps(pixels: ForeignConfig) -> list[Section]:
    """The steps of timm's transform of a test, see ``timm.data.create_transform``."""
    _, height, width = pixels.get('input_size', InputSize)
    crop_pct, mode = pixels.get('crop_pct', Fraction), pixels.get('crop_mode', str)
    method = dict(interpolation=pixels.get('interpolation', str), backend='pillow')
    larger = [math.floor(side / crop_pct) for side in (height, width)]
    if mode == 'squash':
        resize = dict(type='Resize', scale=(larger[1], larger[0]), **method)
    elif mode == 'center' and height == width:
        resize = dict(type='ResizeEdge', scale=larger[0], edge='short', **method)
    else:
        raise pixels.refuse('crop_mode', 'input_size')
    whole = mode == 'squash' and larger == [height, width]
    return [resize] if whole else [resize, dict(type='CenterCrop', crop_size=(width, height))]
