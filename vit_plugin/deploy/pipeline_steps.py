"""The metadata of an exported file: its pipeline as plain steps, and the meaning of its outputs.

The code calls this metadata facts, see :class:`~vit_plugin.deploy.exported_model.ExportFacts`. The
steps are those of :mod:`~vit_plugin.deploy.pixel_steps`, which run without a framework.
"""

import json
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from vit_plugin.errors import ConfigError
from vit_plugin.files.resizing import rounded_up
from vit_plugin.inference.answered_task import is_multi_label
from vit_plugin.inference.image_transforms import PLAIN_ARGUMENTS, PipelineTransform, TimmTransform
from vit_plugin.inference.prepared_image import takes_rgb

from .input_sizes import InputSizes

PipelineStep = dict[str, Any]  # a step of pixel_steps, before it is validated
OPEN_SIDE_RATIO = 2  # a scale with a larger aspect ratio only limits the shorter side


def _pair(size: Any) -> list[int]:
    """(height, width), (side,) or a side -> [width, height]."""
    sides = (size,) if isinstance(size, int) else size
    return [int(sides[-1]), int(sides[0])]


def _resize(rule: str, *arguments: Any, interpolation: str, backend: str) -> PipelineStep:
    """A resize by one of :data:`~vit_plugin.deploy.pixel_steps.RESIZE_RULES`."""
    return dict(resize=[rule, *arguments], interpolation=interpolation, backend=backend)


def _translate_mmcv(transform: Any) -> PipelineStep | None:
    if transform.scale is None:  # it has a scale_factor
        return None
    width, height = transform.scale
    method = dict(interpolation=transform.interpolation, backend=transform.backend)
    if transform.keep_ratio:
        return _resize('scale', width, height, **method)
    return _resize('exact', width, height, **method)


def _translate_torchvision(transform: Any) -> PipelineStep | None:
    if transform.max_size is not None:
        return None
    method = dict(interpolation=transform.interpolation.value, backend='pillow')
    if isinstance(transform.size, int) or len(transform.size) == 1:
        return _resize('edge', 'short', _pair(transform.size)[0], **method)
    return _resize('exact', *_pair(transform.size), **method)


def _translate_timm(transform: Any) -> PipelineStep:
    method = dict(interpolation=transform.interpolation.value, backend='pillow')
    return _resize('target', *_pair(transform.size), transform.longest, **method)


# (package, class) of a transform -> function that returns its step, or None for unsupported
# options.
TRANSLATIONS: dict[tuple[str, str], Callable[[Any], PipelineStep | None]] = {
    ('mmcv', 'Resize'): _translate_mmcv,
    ('mmdet', 'Resize'): _translate_mmcv,
    ('mmseg', 'Resize'): _translate_mmcv,
    ('mmpretrain', 'ResizeEdge'): lambda transform: _resize(
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


def last_resize(steps: Sequence[PipelineStep]) -> tuple[str, list[Any]]:
    """The rule and the arguments of the resize that ends a pipeline, ``'none'`` without one."""
    rule, *arguments = steps[-1].get('resize', ['none']) if steps else ['none']
    return str(rule), arguments


def size_of_training(
    steps: Sequence[PipelineStep], sizes: InputSizes, model: Any
) -> tuple[int, int]:
    """Height and width for a file if the sizes of the test pipeline depend on the images.

    Args:
        steps: the steps of the test pipeline.
        sizes: the sizes of the test.
        model: a model with a ``backbone``, whose ``img_size`` is that of its training.
    """
    rule, arguments = last_resize(steps)
    height, width = model.backbone.img_size
    if rule == 'target' or (rule == 'scale' and not has_open_side(*arguments)):
        width, height = map(int, arguments[:2])
    unit = math.lcm(model.backbone.strides[-1], sizes.padding.unit)
    rows, columns = (rounded_up(side, unit) for side in sizes.padding.padded_size((height, width)))
    return rows, columns


def has_open_side(width: float, height: float) -> bool:
    """True if a scale only limits the shorter side, such as MMSegmentation's (2048, 512)."""
    return max(width, height) > OPEN_SIDE_RATIO * min(width, height)


def scale_in(size: tuple[int, int], width: float, height: float) -> tuple[float, float]:
    """The scale (width, height) of a pipeline, enlarged or reduced to this height and width."""
    ratio = min(size[1] / width, size[0] / height)
    if has_open_side(width, height):
        ratio = min(size) / min(width, height)
    return width * ratio, height * ratio


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


def fill_of(preprocessor: Any, channels: int = 3) -> list[float]:
    """The pixel (C) that a preprocessor pads images with, in the pipeline's order of channels.

    Args:
        preprocessor: the preprocessor.
        channels: number of channels of the images.
    """
    value = getattr(preprocessor, 'pad_value', 0.0)
    mean: Any = getattr(preprocessor, 'mean', None)
    fill = [float(value)] * channels
    if mean is not None:
        fill = (mean + value * preprocessor.std).flatten().tolist()
    return fill[::-1] if takes_rgb(preprocessor) else fill


def adapt_to_size(
    steps: Sequence[PipelineStep], sizes: InputSizes, fill: Sequence[float]
) -> list[PipelineStep]:
    """Adapt the steps of a test pipeline to the sizes of a file.

    Args:
        steps: the steps of the pipeline.
        sizes: the sizes of the file.
        fill: see :func:`fill_of`.
    """
    unit, min_size, _ = sizes.padding
    if sizes.from_test_pipeline or sizes.fixed_size is None:
        # A file of one size states that size, for programs such as those of docs/deployment.md.
        pad: PipelineStep = dict(pad=list((sizes.fixed_size or min_size)[::-1]), fill=list(fill))
        if sizes.fixed_size is None:
            pad['unit'] = unit
        return [*steps, pad] if sizes.padding.adds_pixels else [*steps]
    width, height = sizes.fixed_size[::-1]
    last: PipelineStep = next((step for step in reversed(steps) if 'resize' in step), {})
    method = dict(
        interpolation=last.get('interpolation', 'bilinear'), backend=last.get('backend', 'cv2')
    )
    rule, arguments = last_resize(steps)
    if rule in ('scale', 'target', 'edge'):
        # The scale of the pipeline follows the orientation of the image; the size of the file does
        # not.
        if rule == 'scale':
            scale = scale_in(sizes.fixed_size, *arguments)
            resize = _resize('scale', *scale, width, height, **method)
        else:
            # 1 is for a size within the target, see `target_size`.
            resize = _resize('target', width, height, 1, **method)
        pad = dict(pad=[width, height], fill=list(fill))
        return [*steps[:-1], resize, pad]
    crop = steps[-1] if steps else {}
    if last and crop.get('crop', [width, height]) != [width, height]:
        # Crop the same part of the image: keep the ratio of the resized side to the crop.
        resize_rule, *sides = last['resize']
        around = 0  # for a size around the target
        if resize_rule == 'target':
            around = sides.pop()
        # An edge is compared with the shorter side of the crop, a height with its height.
        cropped_side = min(crop['crop']) if resize_rule == 'edge' else crop['crop'][1]
        ratio = sides[-1] / cropped_side
        resize = _resize('target', width * ratio, height * ratio, around, **method)
        return [*steps[: steps.index(last)], resize, dict(crop, crop=[width, height])]
    return [*steps, _resize('exact', width, height, **method)]


def pixel_steps_of(trained: Any) -> list[PipelineStep]:
    """The test pipeline of a ``TrainedModel`` as steps, from an image to the network's pixels.

    Raises:
        ConfigError: for a transform that has no step.
    """
    if not trained.has_pixels:
        return []
    return [*reading_steps(trained.pixels), *steps_of(trained.pixels.transforms)]


def facts_of(trained: Any, sizes: InputSizes, steps: Sequence[PipelineStep]) -> str:
    """The metadata of a model's file, as JSON, with which ``ExportedModel`` runs it.

    Args:
        trained: the model.
        sizes: the sizes of images that the file takes.
        steps: the steps of the test pipeline, see :func:`pixel_steps_of`.
    """
    model = trained.model
    decode_head: Any = getattr(model, 'decode_head', None)
    backbone = getattr(model, 'backbone', model)
    stem, channels = getattr(backbone, 'patch_embed', None), getattr(backbone, 'in_channels', 3)
    facts = dict(
        classes=trained.classes,
        multi_label=is_multi_label(model),
        align_corners=bool(getattr(decode_head, 'align_corners', False)),
        **trained.prediction_class.facts_of(model),
        rgb=takes_rgb(model.data_preprocessor),
        patch=getattr(stem, 'stride', 1),
        slices=trained.slices,
        usual=trained.training_size,
        steps=adapt_to_size(steps, sizes, fill_of(model.data_preprocessor, channels)),
    )
    # OpenCV's JSON reader, in programs of docs/deployment.md, does not accept null.
    return json.dumps({key: value for key, value in facts.items() if value is not None})
