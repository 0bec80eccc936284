"""Resize and center-crop images as the frameworks do, without torch."""

from collections.abc import Sequence

import cv2
import numpy as np
from PIL import Image

INTERPOLATIONS = dict(  # OpenCV's, by the frameworks' names
    nearest=cv2.INTER_NEAREST,
    bilinear=cv2.INTER_LINEAR,
    bicubic=cv2.INTER_CUBIC,
    area=cv2.INTER_AREA,
    lanczos=cv2.INTER_LANCZOS4,
)


def rounded_up(side: int, unit: int) -> int:
    """The smallest multiple of ``unit`` that is not below ``side``."""
    return -(-side // unit) * unit


def edge_size(width: int, height: int, edge: str, length: int) -> tuple[int, int]:
    """The size after one edge is resized to a length, as by MMPretrain's ``ResizeEdge``.

    torchvision's ``Resize`` of one number does the same.

    Args:
        width, height: the size before, in pixels.
        edge: the edge that gets the length: ``'short'``, ``'long'``, ``'width'`` or ``'height'``.
        length: its new length in pixels.

    Returns:
        The new width and height.
    """
    by_width = dict(short=width < height, long=width > height, width=True, height=False)[edge]
    if by_width:
        return length, int(length * height / width)
    return int(length * width / height), length


def center_start(side: int, crop_side: int, rounds_down: bool = False) -> int:
    """The first pixel of a center crop along a side.

    Half of the remainder is rounded to even, as in mmcv, torchvision and timm, or down, as in
    transformers. A side smaller than the crop begins at 0.
    """
    left_over = max(side - crop_side, 0)
    return left_over // 2 if rounds_down else round(left_over / 2)


def center_crop(image: np.ndarray, size: Sequence[int], rounds_down: bool = False) -> np.ndarray:
    """Cut the middle out of an image (H, W, C). A smaller side stays as it is.

    Args:
        image: the image.
        size: width and height of the crop.
        rounds_down: see :func:`center_start`.
    """
    width, height = size
    top = center_start(image.shape[0], height, rounds_down)
    left = center_start(image.shape[1], width, rounds_down)
    return image[top : top + height, left : left + width]


def resize_image(
    image: np.ndarray, size: Sequence[int], interpolation: str, backend: str = 'cv2'
) -> np.ndarray:
    """Resize an image (H, W, C) as the frameworks do.

    Args:
        image: the pixels, uint8 for Pillow.
        size: the new width and height.
        interpolation: a key of :data:`INTERPOLATIONS`, or one of Pillow's methods.
        backend: ``'cv2'`` or ``'pillow'``.
    """
    if backend == 'pillow':
        method = Image.Resampling[interpolation.upper()]
        return np.array(Image.fromarray(image).resize([*size], method))
    return cv2.resize(image, size, interpolation=INTERPOLATIONS[interpolation])
