"""Check whether preprocessing matches that of the weights."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from vit_plugin.errors import ConfigError
from vit_plugin.models.layers.pos_embed import LearnedPosEmbed
from vit_plugin.zoo.data_config import known_mean_std

from .examined import Examined, Findings
from .named_weights import START_SETTINGS, file_name

PIXEL_TOLERANCE = 3.0  # on the scale to 255, for differently rounded constants
RATIO = 1.05  # ratio of standard deviations
LARGEST_FRACTION = 1.5  # means of 0 to 255 are above this, means of 0 to 1 below
STRETCH = 2.0  # ratio of image sides
CROPS = (
    'RandomCrop', 'RandomResizedCrop', 'CenterCrop', 'FloorCenterCrop', 'ResizeEdge', 'Resize',
    'RandomResize',
)  # fmt: skip


class Expected(NamedTuple):
    """Mean and standard deviation (0 to 255, RGB) that weights expect, with their source."""

    mean: list[float]
    std: list[float]
    name: str


def _expected(examined: Examined) -> Expected | None:
    """What the weights of the backbone expect, if their name or file states it."""
    backbone = examined.backbone
    arch = backbone.get('arch') or f'timm://{backbone.get("model_name")}'
    for source in reversed(examined.find_sources('backbone')):
        try:
            expected = known_mean_std(arch, source.opened or source.name)
        except ConfigError:
            continue
        if expected:
            mean, std = ([round(255 * x, 3) for x in expected[key]] for key in ('mean', 'std'))
            return Expected(mean, std, file_name(source.name))
    return None


def normalization(examined: Examined) -> Findings:
    """Find pixels that are normalized differently from what the weights expect, or twice."""
    sources = examined.find_sources('backbone')
    mean, std = (examined.preprocessor.get(name) for name in ('mean', 'std'))
    steps = [str(step.get('type')) for step in examined.pipeline('train')]
    normalizes = any(step.rpartition('.')[2] == 'Normalize' for step in steps)
    if mean and normalizes:
        yield (
            'the pixels are normalized twice: by Normalize in the pipeline, and by mean and std of '
            'data_preprocessor',
            'leave Normalize out of the pipelines',
        )
    if not sources or (normalizes and not mean):
        return
    expected = _expected(examined)
    values = f'mean={expected.mean}, std={expected.std}' if expected else 'those of the weights'
    name = expected.name if expected else file_name(sources[-1].name)
    if not mean or not std:
        if _takes_images(examined):
            yield (
                f'data_preprocessor has no mean and std, so that {name} gets pixels from 0 to 255',
                f'give data_preprocessor {values}',
            )
    elif max(*mean, *std) <= LARGEST_FRACTION:
        yield (
            f'data_preprocessor: mean={[*mean]} and std={[*std]} are of values from 0 to 1, and '
            'MMEngine has pixels from 0 to 255',
            f'give {values}' if expected else 'multiply them by 255',
        )
    elif expected and len(mean) == 3 and not _alike(mean, std, expected):
        turned = _alike(mean[::-1], std[::-1], expected)
        yield (
            f'data_preprocessor: mean={[*mean]} and std={[*std]}, where {name} expects {values}'
            + (': their channels stand in the order of BGR' if turned else ''),
            f'give {values}',
        )


def _takes_images(examined: Examined) -> bool:
    """True if the backbone has weights for images with three channels."""
    backbone: Any = getattr(examined.model, 'backbone', None)
    return getattr(backbone, 'in_channels', 0) == 3


def _alike(mean: Sequence[float], std: Sequence[float], expected: Expected) -> bool:
    means = zip(mean, expected.mean, strict=True)
    stds = zip(std, expected.std, strict=True)
    return all(abs(one - other) <= PIXEL_TOLERANCE for one, other in means) and all(
        1 / RATIO <= one / other <= RATIO for one, other in stds
    )


def order(examined: Examined) -> Findings:
    """Find images in BGR where the weights expect RGB."""
    steps = [str(step.get('type')).rpartition('.')[2] for step in examined.pipeline('train')]
    given = examined.preprocessor
    if 'LoadImageFromFile' not in steps or len(given.get('mean') or ()) != 3:
        return
    if given.get('bgr_to_rgb') or given.get('to_rgb') or not examined.find_sources('backbone'):
        return
    if str(examined.backbone.get('type')).startswith('vit_plugin.'):
        switch = 'to_rgb' if examined.scope == 'mmpretrain' else 'bgr_to_rgb'
        yield (
            'LoadImageFromFile reads BGR, and data_preprocessor does not change it, where the '
            'weights have seen RGB',
            f'set data_preprocessor.{switch}=True, and mean and std in the order of RGB',
        )


def positions(examined: Examined) -> Findings:
    """Find a learned position table of another size than the images."""
    backbone: Any = getattr(examined.model, 'backbone', None)
    backbone = getattr(backbone, 'backbone', backbone)  # an adapter wraps the backbone
    side = _training_side(examined)
    if not side or not isinstance(getattr(backbone, 'position', None), LearnedPosEmbed):
        return
    sources = [
        source for source in examined.find_sources('backbone') if source.at not in START_SETTINGS
    ]
    table_side = min(backbone.img_size)
    if sources and not table_side / STRETCH <= side <= table_side * STRETCH:
        yield (
            f'model.backbone.img_size={table_side}, and images of about {side} pixels: the table '
            f'of {file_name(sources[0].name)} is fitted to {table_side} pixels when it is loaded, '
            'and stretched in each forward',
            f'set model.backbone.img_size={side}, or the (height, width) of a padded batch',
        )


def _training_side(examined: Examined) -> int:
    """The shorter side of training images in pixels, by the last transform that sets it; else 0."""
    for step in reversed(examined.pipeline('train')):
        if str(step.get('type')).rpartition('.')[2] in CROPS:
            size = step.get('crop_size') or step.get('scale')
            if isinstance(size, int):
                return size
            if isinstance(size, (list, tuple)) and all(isinstance(side, int) for side in size):
                return min(size)
    return 0
