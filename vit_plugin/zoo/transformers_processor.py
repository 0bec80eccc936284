"""The preprocessing of an image processor of transformers, in terms of timm's data configs."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from vit_plugin.arguments.fields import Section

# Pillow's numbers. None stands for the default of transformers' ViT processors.
PILLOW_INTERPOLATIONS = {
    0: 'nearest',
    1: 'lanczos',
    2: 'bilinear',
    3: 'bicubic',
    4: 'box',
    5: 'hamming',
    None: 'bilinear',
}
# A crop has at least this share of the resized image, or the image would be enlarged without limit.
MIN_CROP_PCT = 0.05


def read_processor(processor: Mapping[str, Any]) -> Section:
    """The entries of a data config that a processor states, see :mod:`~vit_plugin.zoo.data_config`.

    Those that are missing in the processor, or not of the expected form, are left out.
    """
    readers = dict(
        interpolation=_interpolation, mean=_mean, std=_std, crop_pct=_crop_pct, crop_mode=_crop_mode
    )
    config = {}
    for key, read in readers.items():
        # Missing, or not of the expected form, such as a factor of 0.
        with suppress(KeyError, TypeError, ValueError, ArithmeticError):
            config[key] = read(processor)
    return config


def check_crop_pct(share: float) -> None:
    """Raise a ``ValueError`` for a crop of almost nothing, or an enlargement without limit."""
    if not MIN_CROP_PCT <= share <= 1 / MIN_CROP_PCT:
        raise ValueError(f'crop_pct={share} is impossible')


# For entries that are missing or wrong, these raise an error that `read_processor` expects.


def _interpolation(processor: Mapping[str, Any]) -> str:
    return PILLOW_INTERPOLATIONS[processor.get('resample', 2)]


def _mean(processor: Mapping[str, Any]) -> tuple[float, ...]:
    if not processor.get('do_normalize', True):
        return (0,) * 3
    return tuple(value / _scale(processor) for value in processor['image_mean'])


def _std(processor: Mapping[str, Any]) -> tuple[float, ...]:
    std = processor['image_std'] if processor.get('do_normalize', True) else (1,) * 3
    return tuple(value / _scale(processor) for value in std)


def _scale(processor: Mapping[str, Any]) -> float:
    """The processor's factor for pixels (0 to 255), relative to 1 / 255."""
    return (
        255 * processor.get('rescale_factor', 1 / 255) if processor.get('do_rescale', True) else 255
    )


def _sides(size: Any) -> list[int]:
    """The sides that an image is resized or cropped to.

    :func:`_crop_mode` decides what a single number means.
    """
    if isinstance(size, Mapping):
        return [size[key] for key in ('height', 'width', 'shortest_edge') if size.get(key)]
    return [size] if isinstance(size, int) else list(size)


def _crop_pct(processor: Mapping[str, Any]) -> float:
    if not processor.get('do_center_crop'):
        share = processor.get('crop_pct') or 1.0  # only a ConvNeXt states it
    else:
        share = min(_sides(processor['crop_size'])) / min(_sides(processor['size']))
    check_crop_pct(share)
    return share


def _crop_mode(processor: Mapping[str, Any]) -> str:
    """How an image is made square.

    ``height`` and ``width``: squash; ``shortest_edge``: resize and center-crop; ``longest_edge``:
    resize and pad.

    If a crop follows, a single number is the shorter edge, as in CLIP's processor; else both sides.
    """
    size = processor.get('size', 224)
    if not isinstance(size, Mapping):
        return 'center' if processor.get('do_center_crop') else 'squash'
    if 'shortest_edge' in size:
        return 'center'
    return 'border' if 'longest_edge' in size else 'squash'
