"""The values of masks: numbers, grays or colors, and statistics of them."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
from PIL import Image, ImageOps

from anyfolder.limits import read_within
from anyfolder.pixels.image_headers import check_decoding_cost, open_photograph

from .mask_names import FIRST_COLOR

EDGE_WINDOW = 5  # side in pixels of the window that is searched for edges
STRIP_PIXELS = 1 << 22  # pixels of a mask that are processed at once
MAX_COUNTED_VALUES = 1 << 16  # with more values, a file is a photograph, and counting stops
MAX_SEARCHED = 1 << 28  # maximum of pixels times values that are searched for connected parts

# First bytes of formats that are or can be lossy.
LOSSY_FORMATS = {'JPEG': b'\xff\xd8', 'WebP': b'RIFF.*VP8 ', 'AVIF or HEIC': b'.{4}ftyp'}


class MaskProbe(NamedTuple):
    """Statistics of mask values.

    ``parts`` and ``at_edges`` show values that interpolation created: a resized mask of the classes
    0 and 2 has a 1 along their edges, but nowhere else.

    Attributes:
        counts: the number of pixels of each value or color.
        parts: for each value with a pixel near both a lower and a higher value, the number of
            connected parts of its pixels.
        at_edges: for each of these values, how many of the parts have only such pixels.
        palette: the color of each value, in a file with a palette.
    """

    counts: Counter[int]
    parts: Counter[int]
    at_edges: Counter[int]
    palette: Mapping[int, tuple[int, ...]] = {}


def values_of(mask: Path, by_color: bool = False) -> np.ndarray:
    """The values of a mask, which are class numbers or colors.

    Colors begin at :data:`~.mask_names.FIRST_COLOR`.

    Args:
        mask: the file.
        by_color: whether the colors of a palette are taken instead of its numbers.

    Returns:
        The values (H, W), in uint8 if the mode of the image holds no others, or in int32.
    """
    content = read_within(mask, 'bytes of an image')
    check_decoding_cost(content)
    with open_photograph(content) as stored:
        ImageOps.exif_transpose(stored, in_place=True)
        width, height = stored.size
        one_byte = stored.mode in ('L', '1') or (stored.mode == 'P' and not by_color)
        values = np.empty((height, width), np.uint8 if one_byte else np.int32)
        rows = max(STRIP_PIXELS // width, 1)
        for top in range(0, height, rows):  # the colors of a whole large mask may not fit in memory
            strip = stored.crop((0, top, width, min(top + rows, height)))
            values[top : top + rows] = np.asarray(strip) if one_byte else _wide_values_in(strip)
    return values


def _wide_values_in(image: Image.Image) -> np.ndarray:
    """The values (H, W), int32, of an image with integers, floats or colors.

    Raises:
        ValueError: if a value is not an integer.
    """
    if image.mode == 'F' and (np.asarray(image) % 1).any():
        raise ValueError('its values are not integers')
    if image.mode.startswith(('I', 'F')):
        return np.asarray(image).astype(np.int32)
    colors = np.asarray(image.convert('RGBA'))
    pixels = (colors[..., :3] * (colors[..., 3:] > 0)).astype(np.int32)  # transparent is black
    gray = (pixels == pixels[..., :1]).all(axis=-1)
    return np.where(
        gray, pixels[..., 0], FIRST_COLOR + pixels @ np.array([1 << 16, 1 << 8, 1], np.int32)
    )


def probe_mask(mask: Path, by_color: bool = False) -> tuple[Sequence[int], MaskProbe]:
    """The shape (H, W) of a mask, and statistics of its values, see :func:`values_of`."""
    values = values_of(mask, by_color)
    with open_photograph(mask) as image:
        palette = (image.getpalette() or []) if image.mode == 'P' and not by_color else []
    counts, shape = Counter[int](), values.shape
    for strip in np.array_split(values.ravel(), max(values.size // STRIP_PIXELS, 1)):
        counts.update(_counts_in(strip))
        if len(counts) > MAX_COUNTED_VALUES:
            break
    parts, at_edges = Counter[int](), Counter[int]()
    # Only one of three or more values can lie between others.
    if len(counts) > 2 and min(counts) >= 0 and max(counts) < 256:
        # Only the upper rows of a large mask with many values are searched.
        rows = max(MAX_SEARCHED // (len(counts) * values.shape[1]), EDGE_WINDOW)
        values, square = values[:rows], np.ones((EDGE_WINDOW, EDGE_WINDOW), np.uint8)
        pixels = values.astype(np.uint8)
        between = (cv2.erode(pixels, square) < pixels) & (pixels < cv2.dilate(pixels, square))
        for value in np.unique(values[between]).tolist():
            has_value = (pixels == value).astype(np.uint8)
            x, y, width, height = cv2.boundingRect(has_value)
            box = np.s_[y : y + height, x : x + width]
            # The number of parts with the background, and the part of each pixel, 0 for background.
            number, part_of = cv2.connectedComponents(has_value[box])
            has_inner_pixel = np.zeros(number, bool)
            has_inner_pixel[part_of[~between[box]]] = True
            parts[value] = number - 1
            at_edges[value] = number - 1 - int(has_inner_pixel[1:].sum())
    colors = enumerate(map(tuple, np.reshape(palette, (-1, 3)).tolist()))
    used_colors = {value: color for value, color in colors if value in counts}
    return shape, MaskProbe(counts, parts, at_edges, used_colors)


def _counts_in(values: np.ndarray) -> dict[int, int]:
    """The number of pixels of each value."""
    if values.dtype == np.uint8:  # a histogram takes a tenth of the sort below
        histogram = cv2.calcHist([values], [0], None, [256], [0, 256]).ravel()
        distinct, counts = np.flatnonzero(histogram), histogram[histogram > 0].astype(int)
    else:
        distinct, counts = np.unique(values, return_counts=True)
    return dict(zip(distinct.tolist(), counts.tolist(), strict=True))


def lossy_kind(mask: Path) -> str:
    """The lossy format of a file: JPEG, WebP unless lossless, AVIF or HEIC; empty for others."""
    with open(mask, 'rb') as file:
        start = file.read(64)
    return next(
        (kind for kind, mark in LOSSY_FORMATS.items() if re.match(mark, start, re.DOTALL)), ''
    )
