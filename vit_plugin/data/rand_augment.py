"""RandAugment and random erasing of single images, with MMPretrain's random choices and less work."""

from collections.abc import Callable
from typing import Any

import cv2
import numpy as np

from vit_plugin.errors import needed_by
from vit_plugin.registry import TRANSFORMS

with needed_by('RandAugment'):
    from mmpretrain.datasets import transforms as mmpretrain

RAMP = np.arange(256.)


def magnitude_of(operation: mmpretrain.RandAugment, fixed: str = 'magnitude') -> float:
    """The strength of an operation with a sign, drawn as it draws it; ``fixed`` is its attribute for a given one."""
    given = getattr(operation, fixed)
    return operation.random_negative(operation.random_magnitude() if given is None else given)


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
    """An operation that looks every channel's values up in a table made from their histogram."""
    def apply(image: np.ndarray, operation: Any) -> np.ndarray:
        tables = [table(cv2.calcHist([image], [channel], None, [256], [0, 256]).ravel().astype(int))
                  for channel in range(image.shape[2])]
        return cv2.LUT(image, np.stack(tables, axis=-1).astype(np.uint8)[:, None])

    return apply


def contrast(image: np.ndarray, operation: Any) -> np.ndarray:
    factor = 1 + magnitude_of(operation)
    mean = round(cv2.mean(cv2.cvtColor(image, cv2.COLOR_BGR2GRAY))[0])
    return cv2.LUT(image, np.clip(RAMP * factor + mean * (1 - factor), 0, 255).astype(np.uint8))


def brightness(image: np.ndarray, operation: Any) -> np.ndarray:
    return cv2.LUT(image, np.clip(RAMP * (1 + magnitude_of(operation)), 0, 255).astype(np.uint8))


# The operations that are a table of 256 values; MMPretrain's own go through every pixel several times.
TABLES: dict[str, Callable[[np.ndarray, Any], np.ndarray]] = {
    'AutoContrast': by_histogram(stretched),
    'Equalize': by_histogram(equalised),
    'Contrast': contrast,
    'Brightness': brightness,
}


@TRANSFORMS.register_module()
class RandAugment(mmpretrain.RandAugment):
    """MMPretrain's RandAugment (arXiv:1909.13719), its config and its choices, on uint8 images of three channels.

    Contrast, brightness and the two that follow the histogram are tables of 256 values.
    """

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
    """MMPretrain's RandomErasing (arXiv:1708.04896), whose noise of ``fill_std`` OpenCV draws."""

    def _fill_pixels(self, image: np.ndarray, top: int, left: int, height: int, width: int) -> np.ndarray:
        if self.mode == 'const' or self.fill_std is None:
            return super()._fill_pixels(image, top, left, height, width)
        noise = np.empty((height, width, 3), np.uint8)
        cv2.setRNGSeed(np.random.randint(2**31))  # numpy's differs between workers, OpenCV's does not
        image[top:top + height, left:left + width] = cv2.randn(noise, tuple(self.fill_color), tuple(self.fill_std))
        return image
