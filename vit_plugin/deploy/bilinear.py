"""Bilinear resizing, equal to torch's ``interpolate``, without torch."""

import cv2
import numpy as np


def bilinear(values: np.ndarray, size: tuple[int, int], align_corners: bool) -> np.ndarray:
    """Resize values (h, w) to another height and width."""
    if not align_corners:
        return cv2.resize(values, size[::-1], interpolation=cv2.INTER_LINEAR)
    for length in size:  # the rows, then the columns; OpenCV's other functions round positions
        last = len(values) - 1
        positions = np.arange(length, dtype=np.float32) * np.float32(last / max(length - 1, 1))
        before = np.minimum(positions.astype(int), last)
        share = (positions - before)[:, None]
        after = values[np.minimum(before + 1, last)]
        values = ((1 - share) * values[before] + share * after).T
    return values
