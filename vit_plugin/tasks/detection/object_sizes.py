"""Choose a detector's image size, anchors and number of feature maps by the sizes of the objects.

The size of an object is the side of a square of its area.
"""

import math

import numpy as np

from vit_plugin.config.task_model import FINEST_STRIDE

# Quantiles of sizes; the objects of the rarest class are often the smallest ones.
SMALL_QUANTILE, LARGE_QUANTILE = 0.02, 0.98
CLEAR_SIDE, VISIBLE_SIDE = 16, 8  # pixels: two cells of the finest map, and one
MIN_IMAGE_SIDE, MODERATE_IMAGE_SIDE = 128, 512  # pixels of the longer side of an image
COARSE_STRIDE = 64  # pixels; a side that is a multiple of it has complete cells on all maps
MAX_ANCHOR_SCALE = 2 ** (2 / 3)  # scale of the largest of three anchors per position


def choose_image_side(boxes: np.ndarray, largest: int) -> int:
    """The longer side of the model's input, in pixels, at which nearly all objects can be found.

    Time grows with the area of the image. So a small object has 16 pixels if images of up to 512
    pixels are enough for that. Otherwise it has fewer, but at least 8. The side is rounded down to
    whole cells.

    Args:
        boxes: width and height of each object, as shares of the longer side of its image (N, 2).
        largest: the maximum, also used without boxes.
    """
    small, _ = small_and_large(boxes)
    if not small:
        return largest
    side = min(CLEAR_SIDE / small, max(VISIBLE_SIDE / small, MODERATE_IMAGE_SIDE))
    return min(max(int(side) // COARSE_STRIDE * COARSE_STRIDE, MIN_IMAGE_SIDE), largest)


def choose_anchors(boxes: np.ndarray, side: int) -> tuple[int, int]:
    """The size of the smallest anchor in strides, and the number of maps (strides 8, 16, 32...).

    MMDetection calls that size ``octave_base_scale``.

    Args:
        boxes: see :func:`choose_image_side`.
        side: the longer side of the images in pixels.
    """
    small, large = (side * share for share in small_and_large(boxes))
    if not small:
        small, large = 4.0 * FINEST_STRIDE, 64.0 * FINEST_STRIDE  # RetinaNet's own
    # 1, 2 or 4 strides.
    octave = int(2 ** np.clip(round(math.log2(small / FINEST_STRIDE)), 0, 2))
    doublings = math.log2(large / (octave * FINEST_STRIDE * MAX_ANCHOR_SCALE))
    return octave, int(np.clip(math.ceil(doublings) + 1, 3, 5))


def small_and_large(boxes: np.ndarray) -> tuple[float, float]:
    """The sizes of a small and of a large object, as shares like the boxes; 0 without boxes."""
    sides = np.sqrt(boxes.prod(axis=1))
    if not (sides > 0).any():
        return 0.0, 0.0
    small, large = np.quantile(sides[sides > 0], [SMALL_QUANTILE, LARGE_QUANTILE])
    return float(small), float(large)
