"""Made scenes: handwritten digits on parts of two photographs, with the mask and the class of each.

Digits and photographs are scikit-learn's. The validation has digits, and halves of the photographs, that do not
occur in the training.
"""

from typing import NamedTuple

import cv2
import numpy as np
from sklearn.datasets import load_digits, load_sample_images

BACKGROUND = 10  # the class of what is no digit


class Scenes(NamedTuple):
    """Images (N, size, size, 3) in uint8.

    Attributes:
        masks, labels: of the digits of each image, (n, size, size) and (n, ).
        semantic: the class of each pixel (N, size, size).
    """
    images: np.ndarray
    masks: list[np.ndarray]
    labels: list[np.ndarray]
    semantic: np.ndarray


def made_scenes(number: int, size: int = 64, seed: int = 0, validation: bool = False) -> Scenes:
    """Draw scenes of two to five bright digits, 20 to 36 pixels high, on a dark photograph. One may hide another."""
    rng = np.random.default_rng([seed, validation])
    digits = load_digits()
    chosen = np.flatnonzero(np.arange(len(digits.target)) % 5 == 0 if validation else np.arange(len(digits.target)) % 5)
    halves = [np.split(photo, [photo.shape[1] // 2], axis=1)[validation] for photo in load_sample_images().images]
    images, masks, labels, maps = [], [], [], []
    for _ in range(number):
        photo = halves[rng.integers(2)]
        y, x = (rng.integers(side - size) for side in photo.shape[:2])
        image = 0.5 * photo[y:y + size, x:x + size]
        found: list[tuple[np.ndarray, int]] = []
        for index in rng.choice(chosen, rng.integers(2, 6)):
            side = int(rng.integers(20, 37))
            ink = cv2.resize(digits.images[index].astype(np.float32) / 16, (side, side)).clip(0, 1)
            top, left = rng.integers(size - side, size=2)
            whole = np.zeros((size, size), np.float32)
            whole[top:top + side, left:left + side] = ink
            image += whole[..., None] * (rng.integers(200, 256, 3) - image)
            mask = whole > 0.4
            found = [(old & ~mask, label) for old, label in found] + [(mask, int(digits.target[index]))]
        found = [(mask, label) for mask, label in found if mask.sum() >= 20]  # the others are hidden
        images.append(image.round().astype(np.uint8))
        masks.append(np.stack([mask for mask, _ in found]))
        labels.append(np.array([label for _, label in found]))
        maps.append(np.full((size, size), BACKGROUND))
        for mask, label in found:
            maps[-1][mask] = label
    return Scenes(np.stack(images), masks, labels, np.stack(maps))
