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
    """Images (N, size, size, 3) in uint8, and the masks (n, size, size) and labels (n, ) of each image's digits."""
    images: np.ndarray
    masks: list[np.ndarray]
    labels: list[np.ndarray]

    @property
    def semantic(self) -> np.ndarray:
        """The class of each pixel (N, size, size)."""
        maps = np.full(self.images.shape[:3], BACKGROUND)
        for i, (masks, labels) in enumerate(zip(self.masks, self.labels, strict=True)):
            for mask, label in zip(masks, labels, strict=True):
                maps[i][mask] = label
        return maps


def made_scenes(number: int, size: int = 64, seed: int = 0, validation: bool = False) -> Scenes:
    """Draw scenes of one to four digits, 14 to 32 pixels high, of any colour, which hide parts of one another."""
    rng = np.random.default_rng([seed, validation])
    digits = load_digits()
    chosen = np.flatnonzero(np.arange(len(digits.target)) % 5 == 0 if validation else np.arange(len(digits.target)) % 5)
    halves = [np.split(photo, [photo.shape[1] // 2], axis=1)[validation] for photo in load_sample_images().images]
    images, masks, labels = [], [], []
    for _ in range(number):
        photo = halves[rng.integers(2)]
        y, x = (rng.integers(side - size) for side in photo.shape[:2])
        image = photo[y:y + size, x:x + size].astype(np.float32)
        found: list[tuple[np.ndarray, int]] = []
        for index in rng.choice(chosen, rng.integers(1, 5)):
            side = int(rng.integers(14, 33))
            ink = cv2.resize(digits.images[index].astype(np.float32) / 16, (side, side)).clip(0, 1)
            top, left = rng.integers(size - side, size=2)
            whole = np.zeros((size, size), np.float32)
            whole[top:top + side, left:left + side] = ink
            image += whole[..., None] * (rng.integers(0, 256, 3) - image)
            mask = whole > 0.4
            found = [(old & ~mask, label) for old, label in found] + [(mask, int(digits.target[index]))]
        found = [(mask, label) for mask, label in found if mask.sum() >= 20]  # the others are hidden
        images.append(image.round().astype(np.uint8))
        masks.append(np.stack([mask for mask, _ in found]))
        labels.append(np.array([label for _, label in found]))
    return Scenes(np.stack(images), masks, labels)
