"""Bilinear resizing, equal to torch's ``interpolate``, without torch."""

import cv2
import numpy as np


def bilinear(values: np.ndarray, size: tuple[int, int], align_corners: bool) -> np.ndarray:
    """Resize values (h, w) to another height and width.

    ``align_corners`` is that of torch: whether the outermost values keep their positions.
    """
    if not align_corners:
        return cv2.resize(values, size[::-1], interpolation=cv2.INTER_LINEAR)
    # OpenCV has no such resize, and its functions for arbitrary grids round positions. Each round
    # resizes the first axis and transposes, so two rounds resize both axes.
    for length in size:
        last = len(values) - 1
        positions = np.arange(length, dtype=np.float32) * np.float32(last / max(length - 1, 1))
        lower = np.minimum(positions.astype(int), last)
        upper = np.minimum(lower + 1, last)
        share = (positions - lower)[:, None]
        values = ((1 - share) * values[lower] + share * values[upper]).T
    return values
