"""Draw a prediction over its image, by OpenCV alone: with and without torch, into pictures and videos."""

import math
from collections.abc import Sequence

import cv2
import numpy as np

from .predictions import Prediction

FONT = cv2.FONT_HERSHEY_SIMPLEX
LEAST_SIDE = 320  # pixels of the longer side; smaller images are enlarged, so that text is legible
TEXT = 0.022  # height of text over the longer side
LEAST_TEXT, LINE = 11, 400  # pixels of the height of text, and of the longer side for each pixel of a line
OPACITY = 0.45
DARK = 140  # the brightness of a colour from which on text on it is black


def draw(image: np.ndarray, prediction: Prediction, score_thr: float) -> np.ndarray:
    """The picture (H', W', 3) in BGR of a prediction over its image (H, W, 3).

    Boxes above the score have the outlines of their masks, if there are any. Classes, or those of a map with their
    shares, are a legend at the upper left.
    """
    times = max(1, math.ceil(LEAST_SIDE / max(image.shape[:2])))
    picture = np.repeat(np.repeat(image, times, axis=0), times, axis=1)
    if prediction.boxes is None:
        if prediction.map is not None:
            _fill_map(picture, np.repeat(np.repeat(prediction.map, times, axis=0), times, axis=1))
        _legend(picture, prediction)
        return picture
    shown = np.flatnonzero(prediction.scores > score_thr)[::-1]  # the surest is drawn last
    if prediction.masks is not None:
        for i in shown:
            mask = np.repeat(np.repeat(prediction.masks[i], times, axis=0), times, axis=1)
            _fill(picture, mask, colour_of(prediction.labels[i]))
    for i in shown:
        corners = (prediction.boxes[i] * times).round().astype(int)
        _box(picture, corners, f'{prediction.names[i]} {prediction.scores[i]:.2f}', colour_of(prediction.labels[i]))
    return picture


def colour_of(label: int) -> tuple[int, int, int]:
    """The colour of a class in BGR. Neighbouring numbers have hues far apart."""
    hue = math.modf(int(label) * 0.618)[0] * 179
    blue, green, red = cv2.cvtColor(np.array([[[hue, 200, 255]]], np.uint8), cv2.COLOR_HSV2BGR)[0, 0].tolist()
    return blue, green, red


def _fill(picture: np.ndarray, mask: np.ndarray, colour: Sequence[int]) -> None:
    """Tint the pixels of a mask (H, W), and draw its outline."""
    region = mask.astype(bool)
    picture[region] = (1 - OPACITY) * picture[region] + OPACITY * np.array(colour)
    outlines, _ = cv2.findContours(region.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
    cv2.drawContours(picture, outlines, -1, colour, _thickness(picture), cv2.LINE_AA)


def _fill_map(picture: np.ndarray, labels: np.ndarray) -> None:
    """Tint every pixel by its class (H, W)."""
    classes, inverse = np.unique(labels, return_inverse=True)
    colours = np.array([colour_of(label) for label in classes], np.float32)[inverse.reshape(labels.shape)]
    picture[:] = (1 - OPACITY) * picture + OPACITY * colours


def _legend(picture: np.ndarray, prediction: Prediction) -> None:
    """The classes with their values, one below the other as far as there is room."""
    (_, height), _ = cv2.getTextSize('M', FONT, *_text(picture))
    for i, row in enumerate(prediction.rows()):
        bottom = round((i + 1) * 2 * height + 2)
        if bottom > picture.shape[0]:
            break
        colour = colour_of(prediction.labels[i]) if prediction.map is not None else (255, 255, 255)
        value = f'{row["share"]:.0%}' if 'share' in row else f'{row["score"]:.2f}'
        _write(picture, f'{row["class"]} {value}', (2, bottom), colour)


def _box(picture: np.ndarray, corners: np.ndarray, text: str, colour: Sequence[int]) -> None:
    left, top, right, bottom = corners.tolist()
    cv2.rectangle(picture, (left, top), (right, bottom), colour, _thickness(picture))
    (_, height), _ = cv2.getTextSize(text, FONT, *_text(picture))
    above = top - 1 if top - 2 * height >= 0 else bottom + 2 * height  # below the box at the upper edge
    _write(picture, text, (left, min(above, picture.shape[0])), colour)


def _write(picture: np.ndarray, text: str, corner: tuple[int, int], colour: Sequence[int]) -> None:
    """Text on a ground of a colour, with its lower left corner at (x, y), moved into the picture."""
    scale, thickness = _text(picture)
    (width, height), _ = cv2.getTextSize(text, FONT, scale, thickness)
    gap = height // 2
    left = max(min(corner[0], picture.shape[1] - width - 2 * gap), 0)
    bottom = max(corner[1], height + 2 * gap)
    cv2.rectangle(picture, (left, bottom - height - 2 * gap), (left + width + 2 * gap, bottom), colour, cv2.FILLED)
    blue, green, red = colour
    ink = (0, 0, 0) if 0.114 * blue + 0.587 * green + 0.299 * red > DARK else (255, 255, 255)
    cv2.putText(picture, text, (left + gap, bottom - gap), FONT, scale, ink, thickness, cv2.LINE_AA)


def _text(picture: np.ndarray) -> tuple[float, int]:
    """OpenCV's scale and thickness of text for the size of a picture."""
    height = max(TEXT * max(picture.shape[:2]), LEAST_TEXT)
    return cv2.getFontScaleFromHeight(FONT, round(height * 0.7), 1), max(1, round(height / 18))


def _thickness(picture: np.ndarray) -> int:
    return max(1, round(max(picture.shape[:2]) / LINE))
