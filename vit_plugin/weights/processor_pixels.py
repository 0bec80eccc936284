"""Convert an image processor of transformers to test transforms and a normalization.

Each field of its file is read, required or ignored, since unread fields are an error, see
:class:`~vit_plugin.weights.foreign_config.ForeignConfig`.
"""

import math
from collections.abc import Mapping
from typing import Annotated, Any

from annotated_types import Len
from mmengine.logging import print_log

from vit_plugin.arguments.fields import Fraction, Numbers, Positive, PositiveInt, Section

from .foreign_config import ForeignConfig
from .processor_kinds import PROCESSORS, SHORTER_EDGE_KINDS

PROCESSOR_FILE = 'preprocessor_config.json'
PILLOW_RESAMPLING = ('nearest', 'lanczos', 'bilinear', 'bicubic', 'box', 'hamming')  # by number
PROCESSOR_CLASS_ENDINGS = (
    'ImageProcessorFast',
    'ImageProcessorPil',
    'ImageProcessor',
    'FeatureExtractor',
)
CROP_TYPE = 'vit_plugin.FloorCenterCrop'
CONVNEXT_UNCROPPED = 384  # from this side on, ConvNeXt's processor does not crop
LEVIT_FACTOR = 256 / 224  # LeViT resizes the shorter edge to this multiple of the stated one
KNOWN_SIZES = 'where height and width or shortest_edge are expected'  # in messages
RgbNumbers = Annotated[Numbers, Len(3, 3)]
Sides = Mapping[str, PositiveInt]


def processor_pixels(
    content: Mapping[str, Any], default_kind: str, side: tuple[int, int]
) -> tuple[list[Section], Section]:
    """The test transforms for 8-bit images, and ``mean`` and ``std`` (0 to 255).

    Args:
        content: the content of the processor's file. Without one, the defaults of the kind are used
            at the model's image size, and logged.
        default_kind: the kind of an unnamed processor, a key of ``PROCESSORS``.
        side: height and width of the model's images.

    Raises:
        ConfigError: if the processor does anything that is not supported.
    """
    name = str(content.get('image_processor_type', content.get('feature_extractor_type', '')))
    kind = next(
        (name.removesuffix(end) for end in PROCESSOR_CLASS_ENDINGS if name.endswith(end)),
        default_kind,
    )
    if not content:
        height, width = side
        uncropped = dict(crop_pct=None) if 'crop_pct' in PROCESSORS[default_kind].defaults else {}
        content = dict(uncropped, size=dict(height=height, width=width), do_center_crop=False)
        print_log(
            f'There is no {PROCESSOR_FILE}: images are resized to {width} x {height} pixels, and '
            f'have the colors that a {default_kind}ImageProcessor gives them.',
            'current',
        )
    config = ForeignConfig(
        content, PROCESSORS.get(kind, PROCESSORS[default_kind]), f'its {PROCESSOR_FILE}'
    )
    if kind not in PROCESSORS:
        is_new = 'image_processor_type' in content
        field = 'image_processor_type' if is_new else 'feature_extractor_type'
        raise config.unsupported(field, why=f'and known are {", ".join(PROCESSORS)}')
    config.require('do_pad', None, False)
    config.ignore('pad_size')
    steps = _resize(config, kind) + _crop(config, kind)
    normalization = _normalization(config)
    config.check()
    return steps, normalization


def _resize(config: ForeignConfig, kind: str) -> list[Section]:
    """The resize steps, and the crop by a ConvNeXt's ``crop_pct``."""
    resample = config.get('resample', int | None)
    resample = PROCESSORS[kind].defaults['resample'] if resample is None else resample
    if not 0 <= resample < len(PILLOW_RESAMPLING):
        raise config.unsupported('resample')
    size = _size(config, kind)
    if not config['do_resize']:
        config.ignore('crop_pct')
        return []
    method = dict(interpolation=PILLOW_RESAMPLING[resample], backend='pillow')
    if {*size} == {'height', 'width'}:
        # 1000 stands for any side: it shows whether the `crop_pct` has an effect.
        if kind == 'PoolFormer' and _edge_before_crop(config, kind, 1000) != 1000:
            raise config.unsupported('crop_pct', 'size', why='where a shortest_edge is expected')
        config.ignore('crop_pct')
        return [dict(type='Resize', scale=(size['width'], size['height']), **method)]
    if {*size} != {'shortest_edge'}:
        raise config.unsupported('size', why=KNOWN_SIZES)
    side = size['shortest_edge']
    edge = _edge_before_crop(config, kind, side)
    resize = dict(type='ResizeEdge', scale=edge, edge='short', **method)
    if kind != 'ConvNext' or edge == side:
        return [resize]
    if side >= CONVNEXT_UNCROPPED:
        return [dict(type='Resize', scale=(side, side), **method)]
    return [resize, dict(type=CROP_TYPE, crop_size=(side, side))]


def _edge_before_crop(config: ForeignConfig, kind: str, side: int) -> int:
    """The shorter edge of the resized image before a crop of this side."""
    if kind == 'Levit':
        return int(LEVIT_FACTOR * side)
    crop_pct = config.get('crop_pct', Fraction | None) if config.may_have('crop_pct') else None
    return int(side / crop_pct) if crop_pct else side


def _size(config: ForeignConfig, kind: str) -> Mapping[str, int]:
    """The size that images are resized to: the shorter edge, or height and width."""
    size = config.get('size', PositiveInt | list[PositiveInt] | Sides)
    if isinstance(size, int):
        return (
            dict(shortest_edge=size)
            if kind in SHORTER_EDGE_KINDS
            else dict(height=size, width=size)
        )
    if isinstance(size, Mapping):
        return size
    if len(size) != 2:
        raise config.unsupported('size', why=KNOWN_SIZES)
    height, width = size
    return dict(height=height, width=width)


def _crop(config: ForeignConfig, kind: str) -> list[Section]:
    """The center crop, if there is one."""
    crop = config.get('crop_size', PositiveInt | list[PositiveInt] | Sides | None)
    if not config.get('do_center_crop', bool | None):
        return []
    if isinstance(crop, int):
        crop = dict(height=crop, width=crop)
    if not isinstance(crop, Mapping) or {*crop} != {'height', 'width'}:
        raise config.unsupported('crop_size', why='where height and width are expected')
    height, width = crop['height'], crop['width']
    shorter_edge = _edge_before_crop(config, kind, min(_size(config, kind).values()))
    if config['do_resize'] and max(height, width) > shorter_edge:
        raise config.unsupported(
            'crop_size', 'size', why='of which a crop would have an empty border'
        )
    return [dict(type=CROP_TYPE, crop_size=(width, height))]


def _normalization(config: ForeignConfig) -> Section:
    """Mean and standard deviation (0 to 255), and ``to_rgb=False`` if the model takes BGR."""
    factor = config.get('rescale_factor', Positive) if config['do_rescale'] else 1.0
    config.ignore('rescale_factor')
    mean, std = (
        config.get('image_mean', RgbNumbers | None),
        config.get('image_std', RgbNumbers | None),
    )
    second_std = std  # an EfficientNet's processor divides by it twice
    is_mobilevit = config.may_have('do_flip_channel_order')  # its processor does not normalize
    if is_mobilevit or not config.get('do_normalize', bool | None):
        config.ignore('do_normalize')
        mean, std = (0.0,) * 3, (1.0,) * 3
    if config.may_have('include_top') and mean and std and second_std:
        if config['rescale_offset']:  # it subtracts 1 after rescaling
            mean = [value + 1 for value in mean]
        if config['include_top']:
            std = [value * second for value, second in zip(std, second_std, strict=True)]
    if mean is None or std is None or not all(value > 0 for value in std):
        raise config.unsupported('image_mean', 'image_std')
    normalization: Section = {
        name: [_rounded(value / factor) for value in values]
        for name, values in (('mean', mean), ('std', std))
    }
    if is_mobilevit and config['do_flip_channel_order']:
        return dict(normalization, to_rgb=False)
    return normalization


def _rounded(value: float) -> float:
    """Round to 13 significant digits, so that 0.485 * 255 reads as 123.675."""
    digits = 12 - math.floor(math.log10(abs(value) or 1))
    return round(value, digits)
