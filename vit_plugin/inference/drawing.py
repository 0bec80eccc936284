"""Draw a prediction over its image, by OpenCV alone, so that it takes no torch."""

import math
from collections import Counter
from collections.abc import Sequence

import cv2
import numpy as np

from vit_plugin.files.bands import as_photograph
from vit_plugin.files.untrusted_text import printable

from .predictions import Prediction

FONT = cv2.FONT_HERSHEY_SIMPLEX
LEAST_SIDE = 320  # pixels of the longer side; smaller images are enlarged, so that text is legible
TEXT = 0.03  # height of a line of text over the longer side of the picture
LEAST_TEXT = 18  # the same in pixels
LINE = 350  # pixels of the longer side for each pixel of a line's width
OPACITY = 0.45
CROWDED = 0.15  # of the picture, from which on there are no texts at the boxes
WHITE = (255, 255, 255)
DARK = 140  # the brightness of a color from which on text on it is black

Color = tuple[int, int, int]


def draw(image: np.ndarray, prediction: Prediction, score_thr: float) -> np.ndarray:
    """The picture (H', W', 3) in BGR of a prediction over its image (H, W, C).

    Boxes above the score have their masks, if there are any, and their classes. Where these would
    cover much of the picture, a legend says how many there are of each color. It also says the
    classes of an image, or of a map.
    """
    times = max(1, math.ceil(LEAST_SIDE / max(image.shape[:2])))
    picture = _enlarged(as_photograph(image), times)
    if prediction.map is not None:
        _fill_map(picture, _enlarged(prediction.map, times))
    if prediction.boxes is None:
        _legend(picture, _classes_of(prediction))
        return picture
    shown = np.flatnonzero(prediction.scores > score_thr)[::-1]  # the surest is drawn last
    colors = [color_of(prediction.labels[i]) for i in shown]
    if prediction.masks is not None:
        for i, color in zip(shown, colors, strict=True):
            _fill(picture, _enlarged(prediction.masks[i], times), color)
    boxes = (prediction.boxes[shown] * times).round().astype(int)
    for box, color in zip(boxes, colors, strict=True):
        _rectangle(picture, box, color)
    texts = [f'{prediction.names[i]} {prediction.scores[i]:.2f}' for i in shown]
    covered = sum(math.prod(_size(picture, text)) for text in texts)
    if covered > CROWDED * math.prod(picture.shape[:2]):
        names = [prediction.names[i] for i in shown]
        counts = Counter(zip(names, colors, strict=True)).most_common()
        _legend(picture, [(f'{count} {name}', color) for (name, color), count in counts])
        return picture
    for box, text, color in zip(boxes, texts, colors, strict=True):
        _label(picture, box, text, color)
    return picture


def _enlarged(array: np.ndarray, times: int) -> np.ndarray:
    """Every pixel as a square. It is a copy."""
    return array.repeat(times, axis=0).repeat(times, axis=1)


def _classes_of(prediction: Prediction) -> list[tuple[str, Color]]:
    """Legend for the classes of an image or a map, with their colors."""
    if prediction.map is None:
        return [(f'{row["class"]} {row["score"]:.2f}', WHITE) for row in prediction.rows()]
    return [
        (f'{row["class"]} {row["share"]:.0%}', color_of(label))
        for row, label in zip(prediction.rows(), prediction.labels, strict=True)
    ]


def color_of(label: int) -> Color:
    """The color of a class in BGR. Neighboring numbers have hues far apart."""
    hue = math.modf(int(label) * 0.618)[0] * 179
    pixel = np.array([[[hue, 200, 255]]], np.uint8)
    blue, green, red = cv2.cvtColor(pixel, cv2.COLOR_HSV2BGR)[0, 0].tolist()
    return blue, green, red


def _fill(picture: np.ndarray, mask: np.ndarray, color: Color) -> None:
    """Tint the pixels of a mask (H, W), and draw its outline."""
    region = mask.astype(bool)
    picture[region] = (1 - OPACITY) * picture[region] + OPACITY * np.array(color)
    outlines, _ = cv2.findContours(
        region.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE
    )
    cv2.drawContours(picture, outlines, -1, color, _thickness(picture), cv2.LINE_AA)


def _fill_map(picture: np.ndarray, labels: np.ndarray) -> None:
    """Tint every pixel by its class (H, W)."""
    classes, inverse = np.unique(labels, return_inverse=True)
    colors = np.array([color_of(label) for label in classes], np.float32)
    picture[:] = (1 - OPACITY) * picture + OPACITY * colors[inverse.reshape(labels.shape)]


def _legend(picture: np.ndarray, entries: Sequence[tuple[str, Color]]) -> None:
    """Texts at the upper left, one below the other as far as there is room."""
    bottom = 0
    for text, color in entries:
        bottom += _size(picture, text)[1]
        if bottom > picture.shape[0]:
            break
        _write(picture, text, (0, bottom), color)


def _rectangle(picture: np.ndarray, box: np.ndarray, color: Color) -> None:
    left, top, right, bottom = box.tolist()
    thickness = min(_thickness(picture), max(min(right - left, bottom - top) // 6, 1))
    cv2.rectangle(picture, (left, top), (right, bottom), color, thickness)


def _label(picture: np.ndarray, box: np.ndarray, text: str, color: Color) -> None:
    """A text above a box, or below it at the upper edge."""
    left, top, _, bottom = box.tolist()
    height = _size(picture, text)[1]
    below = min(bottom + height, picture.shape[0])
    _write(picture, text, (left, top if top >= height else below), color)


def _write(picture: np.ndarray, text: str, corner: tuple[int, int], color: Color) -> None:
    """Text on a ground of a color, its lower left corner at (x, y), moved into the picture."""
    width, height = _size(picture, text)
    left = max(min(corner[0], picture.shape[1] - width), 0)
    bottom = max(corner[1], height)
    corners = (left, bottom - height), (left + width - 1, bottom - 1)
    cv2.rectangle(picture, *corners, color, cv2.FILLED)
    blue, green, red = color
    ink = (0, 0, 0) if 0.114 * blue + 0.587 * green + 0.299 * red > DARK else WHITE
    scale, thickness = _text(picture)
    at = left + height // 4, bottom - height // 4 - 1
    cv2.putText(picture, printable(text), at, FONT, scale, ink, thickness, cv2.LINE_AA)


def _size(picture: np.ndarray, text: str) -> tuple[int, int]:
    """Width and height in pixels of a text with its ground. All texts have one height."""
    (width, _), _ = cv2.getTextSize(printable(text), FONT, *_text(picture))
    height = max(round(TEXT * max(picture.shape[:2])), LEAST_TEXT)
    return width + height // 2, height


def _text(picture: np.ndarray) -> tuple[float, int]:
    """OpenCV's scale and thickness of text for the size of a picture."""
    height = max(TEXT * max(picture.shape[:2]), LEAST_TEXT)
    return cv2.getFontScaleFromHeight(FONT, round(height / 2), 1), max(1, round(height / 22))


def _thickness(picture: np.ndarray) -> int:
    return max(1, round(max(picture.shape[:2]) / LINE))
