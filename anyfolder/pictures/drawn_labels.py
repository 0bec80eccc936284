"""Draw boxes, masks, class maps, depth and text over an image, by OpenCV and Pillow."""

import math
from collections.abc import Collection, Iterable, Sequence

import cv2
import numpy as np

from .letters import drawable_line
from .palette import Color, color_of

FONT = cv2.FONT_HERSHEY_SIMPLEX
TEXT_HEIGHT = 0.03  # height of a line of text as a fraction of the longer side of the picture
MIN_TEXT_HEIGHT = 18  # pixels
CAPITAL_HEIGHT = 0.73  # height of capital letters as a fraction of the font size
SIDE_PER_LINE_WIDTH = 240  # pixels of the longer side for each pixel of a line's width
OPACITY = 0.45  # share of the color in the pixels of a mask
MAX_TEXT_SHARE = 0.15  # if the texts at boxes would cover more of the picture, none is drawn
BACKGROUND = 'background'  # the name of a class that is not tinted
WHITE = (255, 255, 255)
MIN_DEPTH = 1e-3  # meters; smaller depths, whose inverse would be huge, are shown as this
SHOWN_QUANTILES = (0.02, 0.98)  # quantiles of an image's disparities at the ends of the colors
BRIGHT_FROM = 140  # brightness of a color above which text on it is black


def colored(depth: np.ndarray, in_meters: bool) -> np.ndarray:
    """A depth map (H, W) in colors (H, W, 3), RGB, bright nearby.

    Args:
        depth: the depth of each pixel in meters, where 0 is unknown and becomes black; or the
            disparity of each pixel, which is large nearby.
        in_meters: whether these are meters rather than disparities.
    """
    disparity, unknown = depth, np.zeros(depth.shape, bool)
    if in_meters:
        disparity, unknown = 1 / np.maximum(depth, MIN_DEPTH), depth <= 0
    low, high = np.quantile(disparity if unknown.all() else disparity[~unknown], SHOWN_QUANTILES)
    levels = 255 * np.clip((disparity - low) / max(high - low, 1e-9), 0, 1)
    levels[unknown] = 0
    colors = cv2.applyColorMap(levels.astype(np.uint8), cv2.COLORMAP_INFERNO)
    return np.ascontiguousarray(colors[..., ::-1])


def background_of(classes: Iterable[tuple[int, str]]) -> list[int]:
    """The numbers of the classes that are named background."""
    return [label for label, name in classes if str(name).lower() == BACKGROUND]


def draw_objects(
    picture: np.ndarray,
    boxes: np.ndarray,
    labels: Sequence[int],
    texts: Sequence[str],
    masks: Iterable[np.ndarray] = (),
) -> bool:
    """Draw objects, the most important last. All texts are left out if they would cover too much.

    Args:
        picture: RGB pixels (H, W, 3), which are drawn on.
        boxes: left, top, right and bottom in pixels of the picture, of shape (N, 4).
        labels: the number of the class of each.
        texts: the text at each box.
        masks: the mask (H, W) of each object, if there are masks.

    Returns:
        Whether texts were drawn.
    """
    colors = [color_of(label) for label in labels]
    for mask, color in zip(masks, colors, strict=False):  # there may be no masks
        _tint(picture, mask, color)
    corners = boxes.round().astype(int).tolist()
    for box, color in zip(corners, colors, strict=True):
        _draw_rectangle(picture, box, color)
    covered = sum(math.prod(_text_size(picture, text)) for text in texts)
    if covered > MAX_TEXT_SHARE * math.prod(picture.shape[:2]):
        return False
    taken = np.zeros(picture.shape[:2], bool)
    # The most important object gets the first choice of a place.
    for box, text, color in reversed(list(zip(corners, texts, colors, strict=True))):
        write_line(picture, text, _free_place(taken, box, _text_size(picture, text)), color)
    return True


def draw_map(picture: np.ndarray, labels: np.ndarray, untinted: Collection[int] = ()) -> None:
    """Tint and outline the classes of a class map (H, W) in a picture, except untinted ones."""
    for label in np.unique(labels).tolist():
        if label not in untinted:
            _tint(picture, labels == label, color_of(label))


def _tint(picture: np.ndarray, mask: np.ndarray, color: Color) -> None:
    """Tint the pixels of a mask (H, W), and draw its outline."""
    region = mask.astype(bool)
    picture[region] = (1 - OPACITY) * picture[region] + OPACITY * np.array(color)
    outlines, _ = cv2.findContours(region.astype(np.uint8), cv2.RETR_CCOMP, cv2.CHAIN_APPROX_SIMPLE)
    cv2.drawContours(picture, outlines, -1, color, _thickness(picture), cv2.LINE_AA)


def draw_legend(picture: np.ndarray, entries: Sequence[tuple[str, Color]]) -> None:
    """Write texts at the upper left, one below the other, as far as there is room."""
    top = 0
    for text, color in entries:
        height = _text_size(picture, text)[1]
        if top + height > picture.shape[0]:
            break
        write_line(picture, text, (0, top), color)
        top += height


def _draw_rectangle(picture: np.ndarray, box: Sequence[int], color: Color) -> None:
    """Draw a box, with thinner lines if it is small."""
    left, top, right, bottom = box
    # At least two thirds of a small box stay visible between its lines.
    thickness = min(_thickness(picture), max(min(right - left, bottom - top) // 6, 1))
    cv2.rectangle(picture, (left, top), (right, bottom), color, thickness)


def _free_place(taken: np.ndarray, box: Sequence[int], size: tuple[int, int]) -> tuple[int, int]:
    """The left and top of a text of this size at a box, where it covers other texts least.

    The place is then marked in ``taken``.
    """
    (left, top, right, bottom), (width, height) = box, size
    rows, columns = taken.shape
    places = [
        (max(min(x, columns - width), 0), y)
        for y in (top - height, bottom, top, bottom - height)
        for x in (left, right - width)
        if 0 <= y <= rows - height
    ] or [(max(min(left, columns - width), 0), 0)]

    def covered(place: tuple[int, int]) -> int:
        x, y = place
        return int(taken[y : y + height, x : x + width].sum())

    x, y = min(places, key=covered)
    taken[y : y + height, x : x + width] = True
    return x, y


def write_line(picture: np.ndarray, text: str, corner: tuple[int, int], color: Color) -> None:
    """Write text on a colored background with its upper left corner at (x, y)."""
    (width, height), (left, top) = _text_size(picture, text), corner
    cv2.rectangle(picture, corner, (left + width - 1, top + height - 1), color, cv2.FILLED)
    brightness = np.dot(color, (0.299, 0.587, 0.114))  # the weights of ITU-R BT.601
    ink = (0, 0, 0) if brightness > BRIGHT_FROM else WHITE
    line, font = drawable_line(text)
    edge = height // 4
    if font:
        from PIL import Image, ImageDraw, ImageFont

        ground = picture[top : top + height, left : left + width]
        image, lettering = Image.fromarray(ground), ImageFont.truetype(font, _points(height))
        # `ls`: the position is the left end of the baseline, as for OpenCV below.
        ImageDraw.Draw(image).text((edge, height - edge - 1), line, ink, lettering, anchor='ls')
        ground[:] = image
        return
    scale, thickness = _text_style(picture)
    at = left + edge, top + height - edge - 1
    cv2.putText(picture, line, at, FONT, scale, ink, thickness, cv2.LINE_AA)


def _text_size(picture: np.ndarray, text: str) -> tuple[int, int]:
    """Width and height in pixels of a text with its background. All texts have the same height."""
    height = line_height(max(picture.shape[:2]))
    line, font = drawable_line(text)
    if font:
        from PIL import ImageFont

        width = math.ceil(ImageFont.truetype(font, _points(height)).getlength(line))
    else:
        (width, _), _ = cv2.getTextSize(line, FONT, *_text_style(picture))
    return width + height // 2, height


def line_height(side: int) -> int:
    """The height in pixels of a line of text in a picture with this longer side."""
    return max(round(TEXT_HEIGHT * side), MIN_TEXT_HEIGHT)


def _points(height: int) -> int:
    """The font size at which capitals have half the height."""
    return round(height / 2 / CAPITAL_HEIGHT)


def _text_style(picture: np.ndarray) -> tuple[float, int]:
    """OpenCV's text scale and thickness for the size of a picture."""
    height = max(TEXT_HEIGHT * max(picture.shape[:2]), MIN_TEXT_HEIGHT)
    return cv2.getFontScaleFromHeight(FONT, round(height / 2), 1), max(1, round(height / 22))


def _thickness(picture: np.ndarray) -> int:
    """The width of lines in a picture, in pixels."""
    return max(1, round(max(picture.shape[:2]) / SIDE_PER_LINE_WIDTH))


def enlarged(array: np.ndarray, times: int) -> np.ndarray:
    """Enlarge every pixel to a square, in a copy."""
    return array.repeat(times, axis=0).repeat(times, axis=1)
