"""Check whether preprocessing matches that of the weights.

Each public function is a check of :data:`.checks.CHECKS`.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from vit_plugin.errors import ConfigError
from vit_plugin.models.layers.pos_embed import LearnedPosEmbed
from vit_plugin.zoo.data_config import known_mean_std

from .examined import ExaminedConfig, Faults
from .named_weights import START_SETTINGS, short_source

PIXEL_TOLERANCE = 3.0  # largest difference of means from 0 to 255, for rounded constants
MAX_STD_RATIO = 1.05  # largest ratio of standard deviations, for rounded constants
MAX_UNIT_VALUE = 1.5  # means of pixels from 0 to 255 are above this, of pixels from 0 to 1 below
MAX_STRETCH = 2.0  # largest ratio between the sides of the position table and of the images
BGR_READERS = ('LoadImageFromFile', 'LoadImage')  # transforms that read photographs as BGR
# Transforms that set the size of an image.
SIZE_TRANSFORMS = (
    'RandomCrop', 'RandomResizedCrop', 'CenterCrop', 'FloorCenterCrop', 'ResizeEdge', 'Resize',
    'RandomResize',
)  # fmt: skip


class ExpectedPixels(NamedTuple):
    """Mean and standard deviation (0 to 255, RGB) that weights expect, and the weights' name."""

    mean: list[float]
    std: list[float]
    name: str


def _expected_pixels(examined: ExaminedConfig) -> ExpectedPixels | None:
    """The mean and deviation that the weights of the backbone expect; None if nothing states it."""
    backbone = examined.backbone
    name = backbone.get('model_name')
    arch = backbone.get('arch') or (f'timm://{name}' if name else None)
    for source in reversed(examined.find_sources('backbone')):
        try:
            expected = known_mean_std(arch, source.checkpoint or source.name)
        except ConfigError:  # such as for a name that timm does not know
            continue
        if {'mean', 'std'} <= expected.keys():
            mean, std = ([round(255 * x, 3) for x in expected[key]] for key in ('mean', 'std'))
            return ExpectedPixels(mean, std, short_source(source.name))
    return None


def _values(examined: ExaminedConfig, name: str) -> Sequence[float]:
    """The ``mean`` or ``std`` of the preprocessor, which may be one number; empty without one."""
    values = examined.preprocessor.get(name)
    return [values] if isinstance(values, (int, float)) else values or ()


def wrong_normalization(examined: ExaminedConfig) -> Faults:
    """Find pixels that are not normalized, normalized twice, or not as the weights expect."""
    sources = examined.find_sources('backbone')
    mean, std = (_values(examined, name) for name in ('mean', 'std'))
    steps = [str(step.get('type')) for step in examined.pipeline('train')]
    normalizes = any(step.rpartition('.')[2] == 'Normalize' for step in steps)
    if normalizes and not any(mean) and {*std} <= {1}:  # the preprocessor changes nothing
        return
    if mean and normalizes:
        yield (
            'the pixels are normalized twice: by Normalize in the pipeline, and by mean and std of '
            'data_preprocessor',
            'leave Normalize out of the pipelines',
        )
    if not sources or (normalizes and not mean):
        return
    expected = _expected_pixels(examined)
    values = f'mean={expected.mean}, std={expected.std}' if expected else 'those of the weights'
    name = expected.name if expected else short_source(sources[-1].name)
    if not mean or not std:
        if _takes_images(examined):
            yield (
                f'data_preprocessor has no mean and std, so that {name} gets pixels from 0 to 255',
                f'give data_preprocessor {values}',
            )
    elif max(*mean, *std) <= MAX_UNIT_VALUE:
        yield (
            f'data_preprocessor: mean={[*mean]} and std={[*std]} are of values from 0 to 1, and '
            'MMEngine has pixels from 0 to 255',
            f'give {values}' if expected else 'multiply them by 255',
        )
    elif expected and len(mean) == 3 and len(std) in (1, 3) and not _are_close(mean, std, expected):
        description = (
            f'data_preprocessor: mean={[*mean]} and std={[*std]}, where {name} expects {values}'
        )
        if _are_close(mean[::-1], std[::-1], expected):
            description += ': their channels stand in the order of BGR'
        yield description, f'give {values}'


def _takes_images(examined: ExaminedConfig) -> bool:
    """True if the backbone takes images with three channels."""
    backbone: Any = getattr(examined.model, 'backbone', None)
    return getattr(backbone, 'in_channels', 0) == 3


def _are_close(mean: Sequence[float], std: Sequence[float], expected: ExpectedPixels) -> bool:
    # A single deviation is that of all channels.
    std = [*std] * len(mean) if len(std) == 1 else std
    means = zip(mean, expected.mean, strict=True)
    stds = zip(std, expected.std, strict=True)
    return all(abs(stated - wanted) <= PIXEL_TOLERANCE for stated, wanted in means) and all(
        1 / MAX_STD_RATIO <= stated / wanted <= MAX_STD_RATIO for stated, wanted in stds
    )


def wrong_color_order(examined: ExaminedConfig) -> Faults:
    """Find images in BGR where the weights expect RGB."""
    # Bands are in the order of the file, whatever it is.
    steps = [
        str(step.get('type')).rpartition('.')[2]
        for step in examined.pipeline('train')
        if not step.get('bands')
    ]
    reader = next((name for name in BGR_READERS if name in steps), '')
    preprocessor = examined.preprocessor
    if not reader or len(_values(examined, 'mean')) != 3:
        return
    if preprocessor.get('bgr_to_rgb') or preprocessor.get('to_rgb'):
        return
    if not examined.find_sources('backbone'):
        return
    if str(examined.backbone.get('type')).startswith('vit_plugin.'):
        switch = 'to_rgb' if examined.scope == 'mmpretrain' else 'bgr_to_rgb'
        yield (
            f'{reader} reads BGR, and data_preprocessor does not change it, where the '
            'weights have seen RGB',
            f'set data_preprocessor.{switch}=True, and mean and std in the order of RGB',
        )


def stretched_positions(examined: ExaminedConfig) -> Faults:
    """Find a learned position table that is stretched much to fit the images."""
    backbone: Any = getattr(examined.model, 'backbone', None)
    backbone = getattr(backbone, 'backbone', backbone)  # an adapter wraps the backbone
    side = _training_side(examined)
    if not side or not isinstance(getattr(backbone, 'position', None), LearnedPosEmbed):
        return
    sources = [
        source for source in examined.find_sources('backbone') if source.place not in START_SETTINGS
    ]
    table_side = min(backbone.img_size)
    if sources and not table_side / MAX_STRETCH <= side <= table_side * MAX_STRETCH:
        yield (
            f'model.backbone.img_size={table_side}, and images of about {side} pixels: the table '
            f'of {short_source(sources[0].name)} is fitted to {table_side} pixels when it is '
            'loaded, and stretched in each forward',
            f'set model.backbone.img_size={side}, or the (height, width) of a padded batch',
        )


def _training_side(examined: ExaminedConfig) -> int:
    """The shorter side of training images in pixels, by the last transform that sets it, or 0."""
    for step in reversed(examined.pipeline('train')):
        if str(step.get('type')).rpartition('.')[2] in SIZE_TRANSFORMS:
            size = step.get('crop_size') or step.get('scale')
            if isinstance(size, int):
                return size
            if isinstance(size, (list, tuple)) and all(isinstance(side, int) for side in size):
                return min(size)
    return 0
