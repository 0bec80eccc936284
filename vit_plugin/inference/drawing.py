"""Draw a prediction over its image, with OpenCV and Pillow, without torch."""

import math

import numpy as np

from anyfolder.pictures.drawn_labels import enlarged
from anyfolder.pixels.bands import as_photograph

from .predictions import Prediction

LEAST_SIDE = 320  # pixels of the longer side; smaller images are enlarged, so that text is legible


def draw_prediction(image: np.ndarray, prediction: Prediction, score_thr: float) -> np.ndarray:
    """The picture (H', W', 3) in BGR of a prediction over its image (H, W, C).

    The kind of the prediction decides what is drawn, and whether a lowest score applies.
    """
    times = max(1, math.ceil(LEAST_SIDE / max(image.shape[:2])))
    picture = np.ascontiguousarray(enlarged(as_photograph(image), times)[..., ::-1])
    picture = prediction.drawn(picture, times, score_thr)
    return np.ascontiguousarray(picture[..., ::-1])
