"""A checkpoint's pipeline as :mod:`~vit_plugin.apps.pixel_steps`, for a file that runs alone."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from vit_plugin.errors import ConfigError

PipelineStep = dict[str, Any]


def _pair(size: Any) -> list[int]:
    """Height and width of a number or two, as width and height."""
    height, width = (size, size) if isinstance(size, int) else (*size, *size)[:2]
    return [int(width), int(height)]


def _resize(rule: str, *arguments: Any, interpolation: str, backend: str) -> PipelineStep:
    return dict(resize=[rule, *arguments], interpolation=interpolation, backend=backend)


def _of_mmcv(transform: Any) -> PipelineStep:
    width, height = transform.scale
    method = dict(interpolation=transform.interpolation, backend=transform.backend)
    if transform.keep_ratio:
        return _resize('scale', max(width, height), min(width, height), **method)
    return _resize('exact', width, height, **method)


def _of_torchvision(transform: Any) -> PipelineStep:
    method = dict(interpolation=transform.interpolation.value, backend='pillow')
    if isinstance(transform.size, int):
        return _resize('edge', 'short', transform.size, **method)
    return _resize('exact', *_pair(transform.size), **method)


def _of_timm(transform: Any) -> PipelineStep:
    method = dict(interpolation=transform.interpolation.value, backend='pillow')
    return _resize('target', *_pair(transform.size), transform.longest, **method)


# Package and class of a transform -> its step, or None if it has options that no step stands for.
TRANSLATIONS: dict[tuple[str, str], Callable[[Any], PipelineStep | None]] = {
    ('mmcv', 'Resize'): _of_mmcv,
    ('mmdet', 'Resize'): _of_mmcv,
    ('mmseg', 'Resize'): _of_mmcv,
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
    ('torchvision', 'Resize'): _of_torchvision,
    ('torchvision', 'CenterCrop'): lambda transform: dict(crop=_pair(transform.size), fill=0),
    ('timm', 'ResizeKeepRatio'): _of_timm,
    # Its fill is RGB, as timm's images are.
    ('timm', 'CenterCropOrPad'): lambda transform: dict(
        crop=_pair(transform.size), fill=np.array(transform.fill).tolist()[::-1]
    ),
}
# They leave pixels where they are.
WITHOUT_PIXELS = (
    'Pack',
    'LoadAnnotations',
    'LoadPanopticAnnotations',
    'MaybeToTensor',
    'PILToTensor',
    'MaybePILToTensor',
)


def steps_of(transforms: Sequence[Any]) -> list[PipelineStep]:
    """The steps of built transforms.

    Raises:
        ConfigError: for a transform that no step stands for.
    """
    steps = []
    for transform in transforms:
        name, package = type(transform).__name__, type(transform).__module__.partition('.')[0]
        translation = TRANSLATIONS.get((package, name))
        step = translation(transform) if translation else None
        if step:
            steps.append(step)
        elif not name.startswith(WITHOUT_PIXELS):
            raise ConfigError(
                f'test_dataloader: its pipeline has {name}, which a file in ONNX cannot do to an '
                'image; leave it out, write .pt2, or take one of '
                f'{", ".join(sorted({known for _, known in TRANSLATIONS}))}.'
            )
    return steps


def takes_rgb(preprocessor: Any) -> bool:
    """True if a framework's preprocessor turns BGR, as a pipeline has it, into RGB."""
    return bool(
        getattr(preprocessor, 'to_rgb', getattr(preprocessor, '_channel_conversion', False))
    )


def keeps_ratio(steps: Sequence[PipelineStep]) -> bool:
    """True if the final size depends on the image's shape, so that the framework pads batches."""
    return bool(steps) and steps[-1].get('resize', ['exact'])[0] in ('scale', 'target')


def in_size(
    steps: Sequence[PipelineStep],
    size: tuple[int, int] | None,
    unit: int,
    least: int,
    fill: Sequence[float],
) -> list[PipelineStep]:
    """The steps to images of a size.

    Args:
        steps: the pipeline's.
        size: height and width. None: sides are multiples of ``unit``, at least ``least`` of them.
        unit, least, fill: see :func:`facts_of`; the fill is for what is padded.
    """
    if size is None:
        return (
            [*steps, dict(unit=unit, least=least * unit, fill=list(fill))]
            if keeps_ratio(steps)
            else [*steps]
        )
    width, height = size[::-1]
    last: PipelineStep = next((step for step in reversed(steps) if 'resize' in step), {})
    method = dict(
        interpolation=last.get('interpolation', 'bilinear'), backend=last.get('backend', 'cv2')
    )
    # The scale of the pipeline turns with the image, and the size of the file does not.
    if keeps_ratio(steps):
        return [
            *steps[:-1],
            _resize('target', width, height, 1, **method),
            dict(pad=[width, height], fill=list(fill)),
        ]
    crop = steps[-1] if steps else {}
    # Another size by --img-size: the same part of the image.
    if crop.get('crop', [width, height]) != [width, height]:
        around = last['resize'][-1] / min(crop['crop'])
        resize = _resize('target', width * around, height * around, 0, **method)
        return [resize, dict(crop, crop=[width, height])]
    return [*steps, _resize('exact', width, height, **method)]
