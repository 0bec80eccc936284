"""A model's test pipeline as plain steps, translated from its transforms.

The steps are those of :mod:`~vit_plugin.deploy.pixel_steps`, which run without a framework.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from vit_plugin.errors import ConfigError
from vit_plugin.inference.image_transforms import PLAIN_ARGUMENTS, PipelineTransform, TimmTransform

PipelineStep = dict[str, Any]  # a step of pixel_steps, before it is validated


def _pair(size: Any) -> list[int]:
    """(height, width), (side,) or a side -> [width, height]."""
    sides = (size,) if isinstance(size, int) else size
    return [int(sides[-1]), int(sides[0])]


def resize_step(rule: str, *arguments: Any, interpolation: str, backend: str) -> PipelineStep:
    """A resize by one of :data:`~vit_plugin.deploy.pixel_steps.RESIZE_RULES`."""
    return dict(resize=[rule, *arguments], interpolation=interpolation, backend=backend)


def _translate_mmcv(transform: Any) -> PipelineStep | None:
    if transform.scale is None:  # it has a scale_factor
        return None
    width, height = transform.scale
    method = dict(interpolation=transform.interpolation, backend=transform.backend)
    if transform.keep_ratio:
        return resize_step('scale', width, height, **method)
    return resize_step('exact', width, height, **method)


def _translate_torchvision(transform: Any) -> PipelineStep | None:
    if transform.max_size is not None:
        return None
    method = dict(interpolation=transform.interpolation.value, backend='pillow')
    if isinstance(transform.size, int) or len(transform.size) == 1:
        return resize_step('edge', 'short', _pair(transform.size)[0], **method)
    return resize_step('exact', *_pair(transform.size), **method)


def _translate_timm(transform: Any) -> PipelineStep:
    method = dict(interpolation=transform.interpolation.value, backend='pillow')
    return resize_step('target', *_pair(transform.size), transform.longest, **method)


# (package, class) of a transform -> function that returns its step, or None for unsupported
# options.
TRANSLATIONS: dict[tuple[str, str], Callable[[Any], PipelineStep | None]] = {
    ('mmcv', 'Resize'): _translate_mmcv,
    ('mmdet', 'Resize'): _translate_mmcv,
    ('mmseg', 'Resize'): _translate_mmcv,
    ('mmpretrain', 'ResizeEdge'): lambda transform: resize_step(
        'edge',
        transform.edge,
        transform.scale,
        interpolation=transform.interpolation,
        backend=transform.backend,
    ),
    ('mmcv', 'CenterCrop'): lambda transform: (
        None if transform.auto_pad else dict(crop=list(transform.crop_size))
    ),
    ('vit_plugin', 'FloorCenterCrop'): lambda transform: dict(
        crop=list(transform.crop_size), rounding='floor'
    ),
    ('torchvision', 'Resize'): _translate_torchvision,
    ('torchvision', 'CenterCrop'): lambda transform: dict(crop=_pair(transform.size), fill=0),
    ('timm', 'ResizeKeepRatio'): _translate_timm,
    # The fill is RGB, like timm's images.
    ('timm', 'CenterCropOrPad'): lambda transform: dict(
        crop=_pair(transform.size), fill=np.array(transform.fill).tolist()[::-1]
    ),
}
# vit_plugin has transforms of the same names and arguments, for classifiers without mmcv.
TRANSLATIONS |= {
    ('vit_plugin', name): step for (package, name), step in TRANSLATIONS.items() if 'mm' in package
}
# Prefixes of the names of transforms that leave the pixels as they are.
KEEPING_PIXELS = (
    'Pack',
    'LoadAnnotations',
    'LoadPanopticAnnotations',
    'MaybeToTensor',
    'PILToTensor',
    'MaybePILToTensor',
)


def steps_of(
    transforms: Sequence[Any], reader: str = 'an ONNX file', remedy: str = ', write .pt2'
) -> list[PipelineStep]:
    """Convert built transforms to steps.

    Args:
        transforms: the transforms.
        reader: what shall apply the steps, for messages.
        remedy: another way out, for messages.

    Raises:
        ConfigError: for a transform that has no step.
    """
    steps = []
    for transform in transforms:
        name, package = type(transform).__name__, type(transform).__module__.partition('.')[0]
        translation = TRANSLATIONS.get((package, name))
        step = translation(transform) if translation else None
        if step:
            steps.append(step)
        elif not name.startswith(KEEPING_PIXELS):
            options = ' with these arguments' if translation else ''
            raise ConfigError(
                f'test_dataloader: its pipeline has {name}, which {reader} cannot do to an image'
                f'{options}; leave it out{remedy}, or take one of '
                f'{", ".join(sorted({known for _, known in TRANSLATIONS}))}.'
            )
    return steps


def reading_steps(pixels: PipelineTransform | TimmTransform) -> list[PipelineStep]:
    """The steps that a config's own image reader applies to 8-bit pixels.

    Raises:
        ConfigError: if the reader does not read images as 8-bit colors.
    """
    reader: Any = pixels.custom_reader and pixels.custom_reader.transforms[0]
    if getattr(reader, 'window', None):
        raise ConfigError(
            'test_dataloader: its pipeline reads a window of values, and a file in ONNX is given '
            'images of 8 bits; write .pt2, and give it values from 0 to 255 of this window.'
        )
    if reader:
        options = [
            f'{option}={getattr(reader, option)!r}'
            for option, values in PLAIN_ARGUMENTS.items()
            if getattr(reader, option, values[0]) not in values
        ]
        name = type(reader).__name__
        what = f'{name} has {", ".join(options)}' if options else f'reader is {name}'
        raise ConfigError(
            f'test_dataloader: its {what}, with which an ONNX file reads no images; take '
            'LoadImageFromFile without options, or write .pt2.'
        )
    return [dict(dtype='float32')] if pixels.in_float else []


def pixel_steps_of(trained: Any) -> list[PipelineStep]:
    """The test pipeline of a ``TrainedModel`` as steps, from an image to the network's pixels.

    Raises:
        ConfigError: for a transform that has no step.
    """
    if not trained.has_pixels:
        return []
    return [*reading_steps(trained.pixels), *steps_of(trained.pixels.transforms)]
