"""The preprocessing of a model, in the formats of timm and transformers."""

import math
from collections.abc import Mapping
from typing import Any

from vit_plugin.deploy.deployed_module import normalization_of
from vit_plugin.deploy.pipeline_steps import PipelineStep, steps_of
from vit_plugin.errors import ConfigError
from vit_plugin.inference.prepared_image import takes_rgb
from vit_plugin.inference.trained_model import TrainedModel
from vit_plugin.zoo.transformers_processor import PILLOW_INTERPOLATIONS

# timm's name of an interpolation -> its number in Pillow, which transformers writes as `resample`.
RESAMPLE = {name: number for number, name in PILLOW_INTERPOLATIONS.items() if number is not None}


def timm_data_config(trained: TrainedModel) -> dict[str, Any]:
    """A classifier's test pipeline as arguments of timm's ``create_transform``.

    Libraries resize with Pillow, while a pipeline may use OpenCV, whose pixels differ slightly.

    Raises:
        ConfigError: if the pipeline cannot be expressed this way, because of another step, a reader
            with options or BGR channels, or if the backbone is a framework's own.
    """
    backbone = getattr(trained.model, 'backbone', None)
    if backbone is None:  # MMPretrain's TimmClassifier has a model of timm in its place
        raise ConfigError('it has no backbone')
    # Some of the frameworks' backbones have in_channels that are not those of images.
    is_ours = any(base.__module__.startswith('vit_plugin.') for base in type(backbone).__mro__)
    if not (is_ours and hasattr(backbone, 'in_channels')):
        raise ConfigError(f'its backbone ({type(backbone).__name__}) is not one of vit_plugin')
    mean, std = (values.flatten() / 255 for values in normalization_of(trained.model))
    channels = backbone.in_channels
    if channels == 3 and not takes_rgb(trained.model.data_preprocessor):
        raise ConfigError('its images are BGR, which other libraries do not have')
    normalization = dict(mean=mean.expand(channels).tolist(), std=std.expand(channels).tolist())
    pixels: Any = trained.pixels if trained.has_pixels else None
    if pixels and pixels.custom_reader:
        reader = type(pixels.custom_reader.transforms[0]).__name__
        raise ConfigError(f'its {reader} has options with which other libraries read no images')
    steps = steps_of(pixels.transforms, 'another library', '') if pixels else []
    scale = _scale(steps, getattr(backbone, 'img_size', ()))
    return dict(input_size=[channels, *scale.pop('size')], **scale, **normalization)


def _scale(steps: list[PipelineStep], native_size: tuple[int, ...]) -> dict[str, Any]:
    """Size (H, W), ``interpolation``, ``crop_pct`` and ``crop_mode`` of a resize and a crop.

    Without steps, images are resized to ``native_size``, a height and a width.
    """
    resize, *others = steps or [
        dict(resize=['exact', *native_size[::-1]], interpolation='bilinear')
    ]
    crop = others[0].get('crop') if others else None
    rule, *sides = resize.get('resize', [''])  # a key of pixel_steps.RESIZE_RULES, and arguments
    method = resize.get('interpolation')
    has_only_crop = len(others) == (0 if crop is None else 1)
    if method in RESAMPLE and has_only_crop:
        if rule == 'exact':
            width, height = crop or sides
            crop_pct = width / sides[0]
            # timm has one crop_pct for both sides. A pixel is tolerated, since it rounds the sides.
            if abs(height / crop_pct - sides[1]) < 1:
                return dict(
                    size=(height, width),
                    interpolation=method,
                    crop_pct=crop_pct,
                    crop_mode='squash',
                )
        if rule == 'edge' and sides[0] == 'short' and crop:  # then sides[1] is its length
            return dict(
                size=tuple(crop[::-1]),
                interpolation=method,
                crop_pct=min(crop) / sides[1],
                crop_mode='center',
            )
    raise ConfigError(
        f'its pipeline ({", ".join(next(iter(step)) for step in steps)}) is not a resize, or one '
        'of the shorter side, or of both sides by one factor, and a crop'
    )


def processor_of(pixels: Mapping[str, Any], processor: str = '') -> dict[str, Any]:
    """The content of transformers' ``preprocessor_config.json`` for a timm data config.

    :func:`~vit_plugin.zoo.data_config.data_config_of` is the opposite.

    Args:
        pixels: the data config.
        processor: the class of the image processor. Default: by the ``crop_mode``.
    """
    _, height, width = pixels['input_size']
    # The size before the crop, rounded half up.
    rows, columns = (math.floor(side / pixels['crop_pct'] + 0.5) for side in (height, width))
    center = pixels['crop_mode'] == 'center'
    # CLIPImageProcessor resizes the shorter side, ViTImageProcessor both sides.
    default_processor = 'CLIPImageProcessor' if center else 'ViTImageProcessor'
    crop = dict(do_center_crop=True, crop_size=dict(height=height, width=width))
    return dict(
        image_processor_type=processor or default_processor,
        do_resize=True,
        size=dict(shortest_edge=min(rows, columns)) if center else dict(height=rows, width=columns),
        resample=RESAMPLE[pixels['interpolation']],
        **(crop if pixels['crop_pct'] != 1 or center else {}),
        do_rescale=True,
        rescale_factor=1 / 255,
        do_normalize=True,
        image_mean=list(pixels['mean']),
        image_std=list(pixels['std']),
    )
