"""Scale images and class maps to the size at which reports and sheets show them."""

import numpy as np
from PIL import Image

SIDE = 480  # pixels of the longer side of an image that is drawn on
MIN_SQUARES_SCALE = 6  # from this factor on, pixels of an enlarged image are shown as squares


def scaled(image: np.ndarray) -> np.ndarray:
    """A copy of an image (H, W, 3), uint8, whose longer side is scaled to :data:`SIDE`."""
    height, width = image.shape[:2]
    scale = SIDE / max(height, width)
    size = max(round(width * scale), 1), max(round(height * scale), 1)
    resampling = (
        Image.Resampling.NEAREST if scale >= MIN_SQUARES_SCALE else Image.Resampling.BICUBIC
    )
    return np.array(Image.fromarray(image).resize(size, resampling))


def resized(values: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """A class map or a mask (H, W), resized to a width and height by the nearest pixel."""
    rows, columns = (
        np.arange(new) * old // new for new, old in zip(reversed(size), values.shape, strict=True)
    )
    return values[rows[:, None], columns]
