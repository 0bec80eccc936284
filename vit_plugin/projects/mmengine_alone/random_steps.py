"""Replacements of mmcv's and MMPretrain's random augmentations.

They draw the same random numbers in the same order as the originals, except for RandAugment. So a
seed gives the same images. The order of the draws must not change.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import cv2
import numpy as np
from PIL import Image
from timm.data.auto_augment import posterize, rand_augment_transform

from vit_plugin.arguments.fields import Count, Fraction, NotNegative, PositiveInt
from vit_plugin.errors import EXTRAS, ConfigError
from vit_plugin.files.resizing import INTERPOLATIONS, resize_image

from .steps import Library, PixelTransform, WithTargetSize, as_pair

AXES = dict(vertical=0, horizontal=1)  # axes of an image (H, W, C) by flip direction
MAX_LEVEL = 10  # the level of the largest magnitude


@dataclass
class RandomResizedCrop(WithTargetSize):
    """A random crop of an image, resized.

    Attributes:
        scale: height and width of the result, or one number for both.
        crop_ratio_range: range of the area, relative to the image.
        aspect_ratio_range: range of width over height.
        max_attempts: number of draws before the center is taken.
        interpolation, backend: see :func:`~vit_plugin.files.resizing.resize_image`.
    """

    crop_ratio_range: Sequence[float] = (0.08, 1.0)
    aspect_ratio_range: Sequence[float] = (3 / 4, 4 / 3)
    max_attempts: PositiveInt = 10
    interpolation: str = 'bilinear'
    backend: Library = 'cv2'

    def rand_crop_params(self, img: np.ndarray) -> tuple[int, int, int, int]:
        """Top, left, height and width of a random crop."""
        (h, w), (narrow, wide) = img.shape[:2], self.aspect_ratio_range
        min_area, max_area = self.crop_ratio_range
        for _ in range(self.max_attempts):
            area = np.random.uniform(min_area, max_area) * (h * w)
            ratio = math.exp(np.random.uniform(math.log(narrow), math.log(wide)))
            width, height = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if 0 < width <= w and 0 < height <= h:
                top = np.random.randint(h - height + 1)
                return top, np.random.randint(w - width + 1), height, width
        # The largest center crop whose aspect ratio is within the range.
        height, width = min(h, round(w / narrow)), min(w, round(h * wide))
        return (h - height) // 2, (w - width) // 2, height, width

    def change(self, image: np.ndarray) -> np.ndarray:
        top, left, height, width = self.rand_crop_params(image)
        crop = image[top : top + height, left : left + width]
        return resize_image(crop, as_pair(self.scale)[::-1], self.interpolation, self.backend)


@dataclass
class RandomFlip(PixelTransform):
    """Flip some images.

    Attributes:
        prob: the probability of a flip.
        direction: the direction of the flip.
    """

    prob: Fraction
    direction: Literal['horizontal', 'vertical'] = 'horizontal'

    def _choose_direction(self) -> str | None:
        """The direction, or None for no flip."""
        choices: Any = [self.direction, None]
        return np.random.choice(choices, p=[self.prob, 1.0 - self.prob])

    def change(self, image: np.ndarray) -> np.ndarray:
        if self._choose_direction():
            image = np.flip(image, AXES[self.direction])
        return image


@dataclass
class Rotate(PixelTransform):
    """Rotate by a random angle.

    Attributes:
        magnitude_range: degrees at the levels 0 and ``MAX_LEVEL``.
        magnitude_level: the level.
        magnitude_std: ``'inf'`` draws a random level from 0 to ``magnitude_level``.
        prob: the probability of a rotation.
        pad_val: value of pixels that the image does not cover.
        interpolation: a key of :data:`~vit_plugin.files.resizing.INTERPOLATIONS`.
    """

    magnitude_range: Sequence[float]
    magnitude_level: NotNegative = MAX_LEVEL
    magnitude_std: Literal[0, 'inf'] = 0
    prob: Fraction = 0.5
    pad_val: Count = 128
    interpolation: str = 'nearest'

    def change(self, image: np.ndarray) -> np.ndarray:
        if np.random.rand() > self.prob:
            return image
        (low, high), level = self.magnitude_range, self.magnitude_level
        if self.magnitude_std:
            level = np.random.uniform(0, level)
        angle = level / MAX_LEVEL * (high - low) + low
        if np.random.rand() >= 0.5:
            angle = -angle
        size = image.shape[1::-1]
        matrix = cv2.getRotationMatrix2D([(side - 1) * 0.5 for side in size], angle, 1.0)
        return cv2.warpAffine(
            image,
            matrix,
            size,
            flags=INTERPOLATIONS[self.interpolation],
            borderValue=self.pad_val,
        )


@dataclass
class RandAugment(PixelTransform):
    """timm's RandAugment, which has MMPretrain's operations and ranges (arXiv:1909.13719).

    Attributes:
        policies: the name of MMPretrain's list of operations, which timm also has.
        num_policies: number of operations drawn per image.
        magnitude_level, magnitude_std: mean and standard deviation of the level, out of 10.
    """

    policies: Literal['timm_increasing']
    num_policies: PositiveInt
    magnitude_level: PositiveInt
    magnitude_std: NotNegative = 0.0

    def __post_init__(self) -> None:
        options = f'm{self.magnitude_level}-n{self.num_policies}-mstd{self.magnitude_std}-inc1'
        self.augment = rand_augment_transform(f'rand-{options}', dict(img_mean=(128,) * 3))
        for operation in self.augment.ops:  # replaces one of timm's functions
            if operation.aug_fn is posterize:
                operation.aug_fn = _posterize

    def random_policy_indices(self) -> list[int]:
        """Raise a ``ConfigError``. Augmenting a batch, which calls this, takes MMPretrain."""
        raise ConfigError(f'augments: for RandAugment, pip install {EXTRAS["mmpretrain"]}.')

    def change(self, image: np.ndarray) -> np.ndarray:
        rgb = Image.fromarray(np.ascontiguousarray(image[..., ::-1]))
        return np.asarray(self.augment(rgb))[..., ::-1]


def _posterize(image: Image.Image, bits: int, **kwargs: Any) -> Image.Image:
    """timm's operation. Pillow 13 rejects 0 bits, which give a black image."""
    return posterize(image, bits, **kwargs) if bits else Image.new(image.mode, image.size)
