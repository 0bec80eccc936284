"""Polygons around the non-black pixels of a small PNG, as labeling programs store masks."""

from collections.abc import Sequence

import cv2

from anyfolder.pixels.images import decode


def outlines_of(content: bytes, corner: Sequence[float]) -> list[list[float]]:
    """The polygons ``[x, y, x, y, ...]`` of a mask, with its holes filled.

    Args:
        content: the bytes of the PNG.
        corner: the upper left corner of the PNG in the image, in pixels.

    Raises:
        ValueError: if the content is not an image.
    """
    pixels = decode(content, 'grayscale')
    contours, _ = cv2.findContours(pixels, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
    left, top = corner
    return [  # each contour is (N, 1, 2)
        (contour[:, 0] + (left, top)).flatten().tolist() for contour in contours if len(contour) > 2
    ]
