"""The picture of a prediction over its image, by OpenCV and Pillow, without torch."""

import math
from collections import Counter

import numpy as np

from anyfolder.pictures.drawn_labels import (
    WHITE,
    background_of,
    colored,
    draw_legend,
    draw_map,
    draw_objects,
    enlarged,
)
from anyfolder.pictures.palette import color_of
from anyfolder.pixels.bands import as_photograph

from .predictions import Prediction

LEAST_SIDE = 320  # pixels of the longer side; smaller images are enlarged, so that text is legible


def draw(image: np.ndarray, prediction: Prediction, score_thr: float) -> np.ndarray:
    """The picture (H', W', 3) in BGR of a prediction over its image (H, W, C).

    Boxes above the score have their masks, if there are any, and their classes. Where these would
    cover much of the picture, a legend says how many there are of each color. It also says the
    classes of an image, or of a map. Of a depth, the picture is its colors.
    """
    times = max(1, math.ceil(LEAST_SIDE / max(image.shape[:2])))
    picture = np.ascontiguousarray(enlarged(as_photograph(image), times)[..., ::-1])
    if prediction.depth is not None:
        picture = colored(enlarged(prediction.depth, times), bool(prediction.unit))
        draw_legend(picture, [(prediction.text(score_thr), WHITE)])
    elif prediction.boxes is not None:
        _draw_boxes(picture, prediction, score_thr, times)
    elif prediction.map is None:
        entries = [(f'{row["class"]} {row["score"]:.2f}', WHITE) for row in prediction.rows()]
        draw_legend(picture, entries)
    else:
        classes = list(zip(prediction.labels.tolist(), prediction.names, strict=True))
        background = background_of(classes)
        draw_map(picture, enlarged(prediction.map, times), background)
        entries = [
            (f'{name} {share:.0%}', WHITE if label in background else color_of(label))
            for (label, name), share in zip(classes, prediction.scores, strict=True)
        ]
        draw_legend(picture, entries)
    return np.ascontiguousarray(picture[..., ::-1])


def _draw_boxes(picture: np.ndarray, prediction: Prediction, score_thr: float, times: int) -> None:
    assert prediction.boxes is not None
    shown = np.flatnonzero(prediction.scores > score_thr)[::-1]  # the surest is drawn last
    names, labels = [prediction.names[i] for i in shown], prediction.labels[shown].tolist()
    texts = [f'{name} {prediction.scores[i]:.2f}' for name, i in zip(names, shown, strict=True)]
    masks = prediction.masks
    regions = () if masks is None else (enlarged(masks[i], times) for i in shown)
    if not draw_objects(picture, prediction.boxes[shown] * times, labels, texts, regions):
        counts = Counter(zip(names, labels, strict=True)).most_common()
        entries = [(f'{count} {name}', color_of(label)) for (name, label), count in counts]
        draw_legend(picture, entries)
