"""Polygons around the non-black pixels of a small PNG, as labeling programs store masks."""

from collections.abc import Sequence

import cv2

from anyfolder.pixels.images import decode


def outlines_of(content: bytes, corner: Sequence[float]) -> list[list[float]]:
    """The polygons ``[x, y, x, y, ...]`` of a mask, without its holes.

    Args:
        content: the bytes of the PNG.
        corner: its upper left corner in the image, in pixels.

    Raises:
        ValueError: if it is not an image.
    """
    pixels = decode(content, 'grayscale')
    found, _ = cv2.findContours(pixels, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
    left, top = corner
    return [(part[:, 0] + (left, top)).flatten().tolist() for part in found if len(part) > 2]
