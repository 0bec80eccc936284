"""Faster RandAugment and random erasing of single images, with MMPretrain's random choices."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

import cv2
import numpy as np
from pydantic import Field
from typing_extensions import TypedDict

from vit_plugin.arguments import as_config_error
from vit_plugin.arguments.fields import ASCENDING, Fraction, NotNegative, PositiveInt, Typed
from vit_plugin.errors import ConfigError, leave_out_multimodal, needed_by
from vit_plugin.registry import TRANSFORMS

with needed_by('RandAugment'):
    leave_out_multimodal()
    from mmpretrain.datasets import transforms as mmpretrain
    from mmpretrain.datasets.transforms.auto_augment import RANDAUG_POLICIES

Ratio = Annotated[float, Field(ge=1e-3, le=1e3)]
Range = Annotated[Sequence[Ratio], Field(min_length=2, max_length=2), ASCENDING]
Value = Annotated[float, Field(ge=0, le=255)]
Colours = Annotated[Sequence[Value], Field(min_length=1, max_length=4)]
Colour = Value | Colours
Spread = NotNegative | Annotated[Sequence[NotNegative], Field(min_length=1, max_length=4)]
Magnitude = Annotated[float, Field(ge=0, le=100)]
Policies = Annotated[Sequence[Typed], Field(min_length=1)]
GRAY = (0.114, 0.587, 0.299)  # for BGR, the order of the framework's images
RAMP = np.arange(256.)


class Hparams(TypedDict, total=False):
    """Arguments that all policies share."""
    pad_val: Annotated[int, Field(ge=0, le=255)] | Colours
    interpolation: Literal['nearest', 'bilinear', 'bicubic', 'area', 'lanczos']


def magnitude_of(operation: mmpretrain.RandAugment, fixed: str = 'magnitude') -> float:
    """Draw the signed strength of an operation as MMPretrain does. ``fixed`` names the attribute of a fixed one."""
    given = getattr(operation, fixed)
    return operation.random_negative(operation.random_magnitude() if given is None else given)


def per_channel(values: float | Sequence[float], channels: int, name: str) -> np.ndarray:
    """One value for each channel of an image.

    ``values`` is one number for all channels, or one for each channel. For a grey image it may also be a colour (BGR).

    Raises:
        ConfigError: if there is another number of values.
    """
    values = np.atleast_1d(np.asarray(values, float))
    if channels == 1 and len(values) == 3:
        return np.atleast_1d(values @ GRAY)
    if len(values) not in (1, channels):
        raise ConfigError(f'{name}={values.tolist()} has {len(values)} values for images of {channels} channels; give '
                          'one for each, or a single one.')
    return np.broadcast_to(values, channels).copy()


def stretched(histogram: np.ndarray) -> np.ndarray:
    """The table (256,) that maps the darkest value to 0 and the brightest to 255."""
    low, high = np.flatnonzero(histogram)[[0, -1]]
    return RAMP if low == high else np.clip((RAMP - low) * (255 / (high - low)), 0, 255)


def equalised(histogram: np.ndarray) -> np.ndarray:
    """The table (256,) that spreads the values evenly (PIL's ``ImageOps.equalize``)."""
    step = (histogram.sum() - histogram[np.flatnonzero(histogram)[-1]]) // 255
    if not step:
        return RAMP
    return np.minimum((np.concatenate(([0], np.cumsum(histogram)[:-1])) + step // 2) // step, 255)


def by_histogram(table: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray, Any], np.ndarray]:
    """An operation that maps the values of every channel by a table from their histogram."""
    def apply(image: np.ndarray, operation: Any) -> np.ndarray:
        tables = [table(cv2.calcHist([image], [channel], None, [256], [0, 256]).ravel().astype(int))
                  for channel in range(image.shape[2])]
        return cv2.LUT(image, np.stack(tables, axis=-1).astype(np.uint8)[:, None])

    return apply


def contrast(image: np.ndarray, operation: Any) -> np.ndarray:
    """The image (H, W, 3), BGR, with its distance to its mean grey multiplied."""
    factor = 1 + magnitude_of(operation)
    mean = round(cv2.mean(cv2.cvtColor(image, cv2.COLOR_BGR2GRAY))[0])
    return cv2.LUT(image, np.clip(RAMP * factor + mean * (1 - factor), 0, 255).astype(np.uint8))


def brightness(image: np.ndarray, operation: Any) -> np.ndarray:
    """The image multiplied."""
    return cv2.LUT(image, np.clip(RAMP * (1 + magnitude_of(operation)), 0, 255).astype(np.uint8))


# Operations that are tables of 256 values. MMPretrain's versions pass over all pixels several times.
TABLES: dict[str, Callable[[np.ndarray, Any], np.ndarray]] = {
    'AutoContrast': by_histogram(stretched),
    'Equalize': by_histogram(equalised),
    'Contrast': contrast,
    'Brightness': brightness,
}


@TRANSFORMS.register_module()
class RandAugment(mmpretrain.RandAugment):
    """MMPretrain's RandAugment (arXiv:1909.13719) for uint8 images of three channels.

    Config and random choices are MMPretrain's. Contrast, brightness and the two operations with a histogram use tables
    of 256 values.
    """

    def __init__(self, policies: str | Policies, num_policies: PositiveInt, magnitude_level: Magnitude,
                 magnitude_std: Magnitude | Literal['inf'] = 0., total_level: PositiveInt = 10,
                 hparams: Hparams = dict(pad_val=128)) -> None:
        if isinstance(policies, str) and policies not in RANDAUG_POLICIES:
            raise ConfigError(f'RandAugment: policies={policies!r} must be one of {", ".join(RANDAUG_POLICIES)}, or a '
                              'list of dicts.')
        policies = policies if isinstance(policies, str) else list(policies)
        with as_config_error('RandAugment: policies'):
            super().__init__(policies, num_policies, magnitude_level, magnitude_std, total_level, hparams)

    def transform(self, results: dict) -> dict:
        for index in self.random_policy_indices():
            operation = self.transforms[index]
            table = TABLES.get(type(operation).__name__)
            if table is None:
                results = operation(results)
            elif not operation.random_disable():
                results['img'] = table(results['img'], operation)
        return results


@TRANSFORMS.register_module()
class RandomErasing(mmpretrain.RandomErasing):
    """MMPretrain's RandomErasing (arXiv:1708.04896) for images with any number of channels.

    OpenCV draws the noise of ``fill_std``. ``fill_color`` and ``fill_std`` are one number, or one for each channel.
    """

    def __init__(self, erase_prob: Fraction = 0.5, min_area_ratio: Fraction = 0.02, max_area_ratio: Fraction = 0.4,
                 aspect_range: Ratio | Range = (3 / 10, 10 / 3), mode: Literal['const', 'rand'] = 'const',
                 fill_color: Colour = (128, 128, 128), fill_std: Spread | None = None) -> None:
        if min_area_ratio > max_area_ratio:
            raise ConfigError(f'RandomErasing: min_area_ratio={min_area_ratio} is above max_area_ratio='
                              f'{max_area_ratio}; swap them.')
        spread = (aspect_range, 1 / aspect_range) if isinstance(aspect_range, (int, float)) else aspect_range
        super().__init__(float(erase_prob), float(min_area_ratio), float(max_area_ratio),
                         tuple(map(float, sorted(spread))), mode)
        self.fill_color, self.fill_std = fill_color, fill_std

    def _fill_pixels(self, image: np.ndarray, top: int, left: int, height: int, width: int) -> np.ndarray:
        channels = 1 if image.ndim == 2 else image.shape[2]
        shape = (height, width, channels)
        colour = per_channel(self.fill_color, channels, 'RandomErasing: fill_color')
        if self.mode == 'const':
            patch = np.broadcast_to(colour.astype(np.uint8), shape)
        elif self.fill_std is None:
            patch = np.random.uniform(0, 256, shape).astype(np.uint8)
        else:
            std = per_channel(self.fill_std, channels, 'RandomErasing: fill_std')
            cv2.setRNGSeed(np.random.randint(2**31))  # numpy's seed differs between workers, OpenCV's does not
            patch = cv2.randn(np.empty(shape, np.uint8), tuple(colour), tuple(std)).reshape(shape)
        image[top:top + height, left:left + width] = patch if image.ndim == 3 else patch[..., 0]
        return image
