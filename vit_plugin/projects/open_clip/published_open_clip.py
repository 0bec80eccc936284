"""Read a folder of OpenCLIP (``open_clip_config.json``) as a config of its image tower here.

The config is translated: that of a ViT to transformers' CLIP, whose image tower computes the same,
and that of a tower of timm (``visual.trunk``) to a ``config.json`` of timm. The kernel's readers of
these do the rest. Each entry must be read, required to have a supported value, or ignored since it
has no effect; any other is an error, see
:class:`~vit_plugin.weights.foreign_config.ForeignConfig`, and ``open_clip_kinds.py`` for the
entries. The projection to the space that images and text share is left out, as for transformers'
CLIP.
"""

from collections.abc import Sequence
from pkgutil import resolve_name
from typing import Annotated, Any

import timm
import torch
from annotated_types import Len
from timm.models.eva import Eva
from timm.models.vision_transformer import VisionTransformer
from torch import nn

from vit_plugin.arguments.fields import Positive, PositiveInt, Section
from vit_plugin.errors import ConfigError
from vit_plugin.project import declared_rows
from vit_plugin.weights.foreign_config import ForeignConfig
from vit_plugin.weights.published import Published, RgbFloats
from vit_plugin.weights.published_image_model import image_model
from vit_plugin.weights.reading.lazy import Lazy, Weights
from vit_plugin.zoo.data_config import CROP_MODES, open_clip_in_timm_terms

from .open_clip_kinds import (
    FOLDER_FIELDS,
    MODEL_FIELDS,
    PLAIN_VALUES,
    PREPROCESSING_FIELDS,
    VISION_FIELDS,
)

SUBJECT = 'the image tower of its open_clip_config.json'
TOWER, TRUNK = 'visual.', 'visual.trunk.'
PILLOW_NUMBERS = dict(bilinear=2, bicubic=3)
OWN_PROJECTIONS = ('linear', 'mlp')  # values of timm_proj with a module of OpenCLIP after the trunk
Sides = PositiveInt | Annotated[Sequence[PositiveInt], Len(2, 2)]
RgbPositives = Annotated[Sequence[Positive], Len(3, 3)]


def open_clip_tower(
    published: Published,
) -> tuple[Section, list[str]] | tuple[Section, list[str], Weights] | None:
    """The config of the image tower, no classes, and its weights. None for any other folder.

    Raises:
        ConfigError: if no model here computes the tower.
    """
    if not published.open_clip:
        return None
    config = ForeignConfig(published.open_clip, FOLDER_FIELDS, 'its open_clip_config.json')
    published.read_configs.append(config)
    model = config.part('model_cfg', {'': MODEL_FIELDS}, {})
    vision = model.part('vision_cfg', {'': VISION_FIELDS}, {})
    pixels = config.part('preprocess_cfg', {'': PREPROCESSING_FIELDS}, {})
    size = vision.get('image_size', Sides)
    sides = (size, size) if isinstance(size, int) else tuple(size)
    resizing = _preprocessing(pixels, sides)
    if vision.get('timm_model_name', str | None):
        model.ignore('quick_gelu')  # OpenCLIP's towers of timm have timm's activation
        return _timm_tower(published, vision, sides, resizing)
    tower = published.described_as(
        _clip_config(model, vision, sides),
        _clip_processor(pixels, sides, resizing),
        # Without the prefix, the names of the tower of text are the same, and it may be deeper.
        Lazy(
            [name for name in published.weights if name.startswith(TOWER)] or published.weights,
            published.weights.__getitem__,
        ),
        SUBJECT,
    )
    run = image_model(tower)
    assert run is not None  # it knows CLIP
    return (*run, tower.ours)


def _preprocessing(pixels: ForeignConfig, sides: Sequence[int]) -> Section:
    """The ``pretrained_cfg`` of timm for the preprocessing.

    Raises:
        ConfigError: if it pads, crops to a rectangle, or has another size than the tower.
    """
    pixels.require('mode', 'RGB')
    pixels.require('interpolation', *PILLOW_NUMBERS)
    pixels.require('resize_mode', *CROP_MODES)
    pixels.get('mean', RgbFloats | None)
    pixels.get('std', RgbPositives | None)
    stated = pixels.get('size', Sides | None)
    stated = sides if stated is None else (stated, stated) if isinstance(stated, int) else stated
    if [*stated] != [*sides]:
        raise pixels.unsupported('size', why=f'where the tower has {sides[0]} x {sides[1]} pixels')
    resizing = open_clip_in_timm_terms(pixels.content)
    mode = resizing['crop_mode']
    if mode == 'border' or (mode == 'center' and sides[0] != sides[1]):
        raise pixels.unsupported('resize_mode', why='which pads or crops to a rectangle')
    return dict(resizing, input_size=[3, *sides])


def _clip_config(model: ForeignConfig, vision: ForeignConfig, sides: Sequence[int]) -> Section:
    """The config of transformers' ``CLIPVisionModel`` that is the same ViT.

    Raises:
        ConfigError: if it is a ResNet, or has parts that this class does not have.
    """
    if not isinstance(vision.content.get('layers', 12), int):
        raise vision.unsupported('layers', why="which are a ResNet's, and supported are ViTs")
    for name, value in PLAIN_VALUES.items():
        vision.require(name, value)
    vision.ignore('timm_pool', 'timm_proj')
    width, head_width = vision.get('width', PositiveInt), vision.get('head_width', PositiveInt)
    return dict(
        model_type='clip_vision_model',
        architectures=['CLIPVisionModel'],
        hidden_size=width,
        num_hidden_layers=vision.get('layers', PositiveInt),
        num_attention_heads=max(width // head_width, 1),
        intermediate_size=int(width * vision.get('mlp_ratio', Positive)),
        hidden_act='quick_gelu' if model['quick_gelu'] else 'gelu',
        image_size=sides[0] if sides[0] == sides[1] else [*sides],
        patch_size=vision.get('patch_size', PositiveInt),
    )


def _clip_processor(pixels: ForeignConfig, sides: Sequence[int], resizing: Section) -> Section:
    """The file of transformers' ``CLIPImageProcessor`` that does the same."""
    rectangle = dict(height=sides[0], width=sides[1])
    crops = resizing['crop_mode'] == 'center'
    return dict(
        image_processor_type='CLIPImageProcessor',
        size=dict(shortest_edge=sides[0]) if crops else rectangle,
        do_center_crop=crops,
        crop_size=rectangle,
        resample=PILLOW_NUMBERS[pixels['interpolation']],
        image_mean=resizing['mean'],
        image_std=resizing['std'],
    )


def _timm_tower(
    published: Published, vision: ForeignConfig, sides: Sequence[int], resizing: Section
) -> Any:
    """What the reader of timm's folders makes of the trunk.

    Raises:
        ConfigError: if the tower pools by modules of OpenCLIP, or if timm does not know it.
    """
    reader = declared_rows('published').get('timm')
    name, pool = vision.get('timm_model_name', str), vision.get('timm_pool', str)
    projection = vision.get('timm_proj', str | None)
    vision.require('timm_pool', '', 'avg', 'token', 'map')
    vision.require('timm_proj', None, '', 'none', *OWN_PROJECTIONS)
    vision.ignore(*VISION_FIELDS.defaults)  # OpenCLIP ignores the fields of its own ViT
    try:
        pretrained_cfg, is_known = timm.get_pretrained_cfg(name), timm.is_model(name)
    except RuntimeError:  # an unknown tag after the dot
        pretrained_cfg, is_known = None, False
    if reader is None or not is_known:
        raise vision.unsupported('timm_model_name', why=f'which timm {timm.__version__} lacks')
    names = {key.removeprefix(TRUNK): key for key in published.weights if key.startswith(TRUNK)}
    # OpenCLIP projects by a module of its own ('linear', 'mlp'), or not ('none'). Otherwise the
    # trunk's classifier projects.
    if not projection:
        classifier = getattr(pretrained_cfg, 'classifier', None) or ()
        names = {new: key for new, key in names.items() if not new.startswith(classifier)}
    trunk = published.described_as(
        dict(
            architecture=name,
            num_classes=0,
            model_args=_model_args(name, pool, projection in OWN_PROJECTIONS),
            pretrained_cfg=dict(resizing, num_classes=0),
        ),
        {},
        Lazy(names, lambda name: published.weights[names[name]]),
        SUBJECT,
    )
    run = resolve_name(reader)(trunk)
    if run is None:
        raise ConfigError(f'{SUBJECT} is {name} of timm, which no model here computes')
    return run if len(run) == 3 else (*run, trunk.ours)


def _model_args(name: str, pool: str, has_own_projection: bool) -> Section:
    """The arguments of timm's model with this name that make it OpenCLIP's trunk.

    Args:
        name: timm's name.
        pool: the ``timm_pool``.
        has_own_projection: whether a module of OpenCLIP projects. Then OpenCLIP changes the pooling
            of the built trunk, whose norm stays in its place, and an empty text changes nothing.
    """
    if not has_own_projection:
        return dict(global_pool=pool)
    if not pool:
        return {}
    with torch.device('meta'):
        trunk: Any = timm.create_model(name)
    arguments: Section = dict(global_pool=pool)
    is_vit = isinstance(trunk, (VisionTransformer, Eva))
    if is_vit and pool == 'avg' and trunk.global_pool != pool:
        # A trunk that is built with this pooling would have its norm after it.
        norm = 'fc_norm' if isinstance(trunk, VisionTransformer) else 'use_fc_norm'
        arguments[norm] = not isinstance(trunk.fc_norm, nn.Identity)
    return arguments
