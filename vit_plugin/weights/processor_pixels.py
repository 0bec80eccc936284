"""Convert an image processor of transformers to test transforms."""

import math
from collections.abc import Mapping
from typing import Annotated, Any

from annotated_types import Len
from mmengine.logging import print_log

from vit_plugin.arguments.fields import Fraction, Numbers, Positive, PositiveInt, Section

from .foreign_config import ForeignConfig
from .processor_kinds import PROCESSORS, SHORTER

FILE = 'preprocessor_config.json'
PILLOW_RESAMPLING = ('nearest', 'lanczos', 'bilinear', 'bicubic', 'box', 'hamming')  # by number
PROCESSOR_CLASS_ENDINGS = (
    'ImageProcessorFast',
    'ImageProcessorPil',
    'ImageProcessor',
    'FeatureExtractor',
)
CROP_TYPE = 'vit_plugin.FloorCenterCrop'
FROM_CONVNEXT = 384  # from this side on, ConvNeXt's processor does not crop
LARGER_OF_LEVIT = 256 / 224  # LeViT resizes the shorter edge to this multiple of the stated one
Color = Annotated[Numbers, Len(3, 3)]
Sides = Mapping[str, PositiveInt]


def processor_pixels(
    content: Mapping[str, Any], usual: str, side: tuple[int, int]
) -> tuple[list[Section], Section]:
    """The test transforms for 8-bit images, and ``mean`` and ``std`` (0 to 255).

    Args:
        content: the content of the processor's file. Without one, the defaults of the kind are used
            at the model's image size, and logged.
        usual: the kind of an unnamed processor, a key of ``PROCESSORS``.
        side: height and width of the model's images.

    Raises:
        ConfigError: if the processor does anything that is not supported.
    """
    name = str(content.get('image_processor_type', content.get('feature_extractor_type', '')))
    kind = next(
        (name.removesuffix(end) for end in PROCESSOR_CLASS_ENDINGS if name.endswith(end)), usual
    )
    if not content:
        height, width = side
        whole = dict(crop_pct=None) if 'crop_pct' in PROCESSORS[usual].defaults else {}
        content = dict(whole, size=dict(height=height, width=width), do_center_crop=False)
        print_log(
            f'There is no {FILE}: images are resized to {width} x {height} pixels, and have the '
            f'colors that a {usual}ImageProcessor gives them.',
            'current',
        )
    config = ForeignConfig(content, PROCESSORS.get(kind, PROCESSORS[usual]), f'its {FILE}')
    if kind not in PROCESSORS:
        field = 'image_processor_type' if 'image_processor_type' in content else ''
        raise config.refuse(
            field or 'feature_extractor_type', why=f'and known are {", ".join(PROCESSORS)}'
        )
    config.only('do_pad', None, False)
    config.ignore('pad_size')
    steps = _resize(config, kind) + _crop(config, kind)
    normalization = _colors(config)
    config.check()
    return steps, normalization


def _resize(config: ForeignConfig, kind: str) -> list[Section]:
    """The resize steps, and the crop by a ConvNeXt's ``crop_pct``."""
    number = config.get('resample', int | None)
    number = PROCESSORS[kind].defaults['resample'] if number is None else number
    if not 0 <= number < len(PILLOW_RESAMPLING):
        raise config.refuse('resample')
    size = _size(config, kind)
    if not config['do_resize']:
        config.ignore('crop_pct')
        return []
    method = dict(interpolation=PILLOW_RESAMPLING[number], backend='pillow')
    if {*size} == {'height', 'width'}:
        if kind == 'PoolFormer' and _larger(config, kind, 1000) != 1000:
            raise config.refuse('crop_pct', 'size', why='where a shortest_edge is expected')
        config.ignore('crop_pct')
        return [dict(type='Resize', scale=(size['width'], size['height']), **method)]
    if {*size} != {'shortest_edge'}:
        raise config.refuse('size', why='where height and width or shortest_edge are expected')
    side = size['shortest_edge']
    larger = _larger(config, kind, side)
    resize = dict(type='ResizeEdge', scale=larger, edge='short', **method)
    if kind != 'ConvNext' or larger == side:
        return [resize]
    if side >= FROM_CONVNEXT:
        return [dict(type='Resize', scale=(side, side), **method)]
    return [resize, dict(type=CROP_TYPE, crop_size=(side, side))]


def _larger(config: ForeignConfig, kind: str, side: int) -> int:
    """The shorter edge of the resized image before a crop of this side."""
    if kind == 'Levit':
        return int(LARGER_OF_LEVIT * side)
    share = config.may_have('crop_pct') and config.get('crop_pct', Fraction | None)
    return int(side / share) if share else side


def _size(config: ForeignConfig, kind: str) -> Mapping[str, int]:
    """The size that images are resized to: the shorter edge, or height and width."""
    size = config.get('size', PositiveInt | list[PositiveInt] | Sides)
    if isinstance(size, int):
        return dict(shortest_edge=size) if kind in SHORTER else dict(height=size, width=size)
    return size if isinstance(size, Mapping) else dict(zip(('height', 'width'), size, strict=False))


def _crop(config: ForeignConfig, kind: str) -> list[Section]:
    crop = config.get('crop_size', PositiveInt | list[PositiveInt] | Sides | None)
    if not config.get('do_center_crop', bool | None):
        return []
    if isinstance(crop, int):
        crop = dict(height=crop, width=crop)
    if not isinstance(crop, Mapping) or {*crop} != {'height', 'width'}:
        raise config.refuse('crop_size', why='where height and width are expected')
    height, width = crop['height'], crop['width']
    least = _larger(config, kind, min(_size(config, kind).values()))
    if config['do_resize'] and max(height, width) > least:
        raise config.refuse('crop_size', 'size', why='of which a crop would have an empty border')
    return [dict(type=CROP_TYPE, crop_size=(width, height))]


def _colors(config: ForeignConfig) -> Section:
    """Mean and standard deviation (0 to 255), and ``to_rgb=False`` if images stay BGR."""
    factor = config.get('rescale_factor', Positive) if config['do_rescale'] else 1.0
    config.ignore('rescale_factor')
    mean, std = config.get('image_mean', Color | None), config.get('image_std', Color | None)
    again = std  # an EfficientNet's processor divides by it twice
    # A MobileViT's processor, which does not normalize.
    flips = config.may_have('do_flip_channel_order')
    if flips or not config.get('do_normalize', bool | None):
        config.ignore('do_normalize')
        mean, std = (0.0,) * 3, (1.0,) * 3
    if config.may_have('include_top') and mean and std and again:
        mean = [value + bool(config['rescale_offset']) for value in mean]
        if config['include_top']:
            std = [value * other for value, other in zip(std, again, strict=True)]
    if mean is None or std is None or not all(value > 0 for value in std):
        raise config.refuse('image_mean', 'image_std')
    colors: Section = {
        name: [_rounded(value / factor) for value in values]
        for name, values in (('mean', mean), ('std', std))
    }
    return dict(colors, to_rgb=False) if flips and config['do_flip_channel_order'] else colors


def _rounded(value: float) -> float:
    """Round, so that 0.485 * 255 reads as 123.675."""
    digits = 12 - math.floor(math.log10(abs(value) or 1))
    return round(value, digits)
