"""The class of each number, gray or color in masks.

Programs export masks in several ways. Class numbers stay unchanged, and 255 is a pixel without a
class. A few values far apart, such as 0 and 255, or 0 and 128, are grays, which are classes in
their order. Colors are looked up in CVAT's ``labelmap.txt``, or are classes in the order of their
values.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
from PIL import Image, ImageOps

from anyfolder.errors import InputError, UnclearError
from anyfolder.limits import read_within
from anyfolder.pixels.image_headers import check_size, photograph

from .findings import Findings
from .mask_classes import NOT_LABELED, MaskValues
from .mask_names import FIRST_COLOR, NamedValues

MAX_CLASSES = 254  # 255 marks pixels without a class
# Smallest value that is a gray level rather than a class number, in masks with few values.
LEAST_GRAY = 100
MAX_GRAY_VALUES = 8  # maximum number of gray levels in masks whose classes have no names
DARK_AND_BRIGHT = {'0-127': 'class 0', '128-255': 'class 255'}
MIN_TWO_GRAYS_SHARE = 0.9  # fraction of pixels with the two main grays in a smoothed binary mask
EDGE_WINDOW = 5  # side in pixels of the window that is searched for edges
STRIP = 1 << 22  # pixels of a mask that are processed at once
ENOUGH = 1 << 16  # number of values from which on a file is a photograph, and counting stops
LOOKED_AT = 1 << 28  # maximum number of pixels times values that are searched for parts

# First bytes of formats that are or can be lossy.
LOSSY_FORMATS = {'JPEG': b'\xff\xd8', 'WebP': b'RIFF.*VP8 ', 'AVIF or HEIC': b'.{4}ftyp'}


class MaskProbe(NamedTuple):
    """Statistics of mask values.

    Attributes:
        counts: the number of pixels of each value or color.
        parts: the number of connected parts of these pixels, if some are near a lower and a higher
            value.
        at_edges: the number of parts with only such pixels.
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
        by_color: whether the colors of a palette count instead of its numbers.

    Returns:
        The values (H, W), in uint8 if the mode of the image holds no others, or in int32.
    """
    content = read_within(mask, 'bytes of an image')
    check_size(content)
    with photograph(content) as stored:
        ImageOps.exif_transpose(stored, in_place=True)
        width, height = stored.size
        one_byte = stored.mode in ('L', '1') or (stored.mode == 'P' and not by_color)
        values = np.empty((height, width), np.uint8 if one_byte else np.int32)
        rows = max(STRIP // width, 1)
        for top in range(0, height, rows):  # the colors of a whole large mask may not fit in memory
            strip = stored.crop((0, top, width, min(top + rows, height)))
            values[top : top + rows] = np.asarray(strip) if one_byte else _wide_values_in(strip)
    return values


def _wide_values_in(image: Image.Image) -> np.ndarray:
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
    with photograph(mask) as image:
        palette = (image.getpalette() or []) if image.mode == 'P' and not by_color else []
    counts, shape = Counter[int](), values.shape
    for strip in np.array_split(values.ravel(), max(values.size // STRIP, 1)):
        counts.update(_counts_in(strip))
        if len(counts) > ENOUGH:
            break
    parts, at_edges = Counter[int](), Counter[int]()
    if len(counts) > 2 and max(counts) < 256:
        rows = max(LOOKED_AT // (len(counts) * values.shape[1]), EDGE_WINDOW)
        values, square = values[:rows], np.ones((EDGE_WINDOW, EDGE_WINDOW), np.uint8)
        pixels = values.astype(np.uint8)
        between = (cv2.erode(pixels, square) < pixels) & (pixels < cv2.dilate(pixels, square))
        for value in np.unique(values[between]).tolist():
            found = (pixels == value).astype(np.uint8)
            x, y, width, height = cv2.boundingRect(found)
            box = np.s_[y : y + height, x : x + width]
            number, part = cv2.connectedComponents(found[box])
            inside = np.zeros(number, bool)
            inside[part[~between[box]]] = True
            parts[value], at_edges[value] = number - 1, number - 1 - int(inside[1:].sum())
    colors = enumerate(map(tuple, np.reshape(palette, (-1, 3)).tolist()))
    return shape, MaskProbe(counts, parts, at_edges, {i: one for i, one in colors if i in counts})


def _counts_in(values: np.ndarray) -> dict[int, int]:
    """The number of pixels of each value."""
    if values.dtype == np.uint8:  # a histogram takes a tenth of the sort below
        histogram = cv2.calcHist([values], [0], None, [256], [0, 256]).ravel()
        found, pixels_of = np.flatnonzero(histogram), histogram[histogram > 0].astype(int)
    else:
        found, pixels_of = np.unique(values, return_counts=True)
    return dict(zip(found.tolist(), pixels_of.tolist(), strict=True))


def lossy_kind(mask: Path) -> str:
    """The lossy format of a file: JPEG, WebP unless lossless, AVIF; or ''."""
    with open(mask, 'rb') as file:
        start = file.read(64)
    return next(
        (kind for kind, mark in LOSSY_FORMATS.items() if re.match(mark, start, re.DOTALL)), ''
    )


def choose_classes(
    seen: MaskProbe, named: NamedValues, findings: Findings, lossy: Path | None = None
) -> MaskValues:
    """The classes of masks with these statistics; one of the masks can be of a :func:`lossy_kind`.

    Raises:
        InputError: if the values cannot be classes, or their number differs from that of the names.
    """
    counts, values = seen.counts, sorted(seen.counts)
    unnamed = len(values) > MAX_GRAY_VALUES and not (named.numbers or named.colors)
    if lossy and min(np.diff(values), default=0) < LEAST_GRAY:
        raise UnclearError(
            f'{str(lossy)!r} is a {lossy_kind(lossy)} file, which changes the values of '
            f'masks at edges: they have {len(values)} values, which are not class numbers; save '
            'masks as PNG.',
            classes=DARK_AND_BRIGHT if values[-1] < FIRST_COLOR else None,
        )
    if len(values) > MAX_CLASSES + 1 or (unnamed and _are_smoothed(counts)):
        raise UnclearError(
            f'the masks have {len(values)} values, up to {_word(values[-1])}, which are '
            'not class numbers; they may be smoothed or JPEG files, which change values: '
            'save masks as PNG with the class number of each pixel, or name the classes in '
            'classes.txt.',
            classes=DARK_AND_BRIGHT if values[-1] < FIRST_COLOR else None,
        )
    findings.warn_all(
        'mask values mainly at edges between two others, as created by interpolation; '
        'if so, resize masks by nearest neighbor',
        (_word(value) for value, parts in seen.parts.items() if 2 * seen.at_edges[value] >= parts),
    )
    found = _by_name(values, named) or _in_order(values, [*named.numbers.values()], findings)
    empty = sorted({*range(len(found.classes))} - {*found.numbers.values()})
    findings.warn_all(
        'classes without a pixel in any mask: no pixel of', (found.classes[i] for i in empty)
    )
    without = [value for value, number in found.numbers.items() if number == NOT_LABELED]
    if without:
        share = sum(map(counts.__getitem__, without)) / sum(counts.values())
        findings.warn(
            f'masks with pixels without a class, value {", ".join(map(_word, without))}',
            f'{100 * share:.1f} % of all pixels',
        )
    return found


def _by_name(values: list[int], named: NamedValues) -> MaskValues | None:
    """The classes of the colors or numbers that a file names, unless the numbers are grays.

    Raises:
        InputError: for a color without a name.
    """
    labeled = {*values} - {NOT_LABELED}
    names: Mapping[int, str] = {}
    if len(labeled) > 1 and labeled <= named.numbers.keys():
        names = named.numbers
    elif named.colors:
        names = named.colors
        if unknown := [value for value in values if value not in names]:
            raise UnclearError(
                f'the masks have the value {_word(unknown[0])}, which {str(named.file)!r} '
                'does not name; add its color.',
                classes={_word(value): names.get(value) for value in [*names, *unknown]},
            )
    if not names:
        return None
    classes = tuple(dict.fromkeys(names.values()))
    return MaskValues(
        classes,
        {value: classes.index(names[value]) if value in names else NOT_LABELED for value in values},
        by_color=bool(named.colors),
    )


def _in_order(values: list[int], names: list[str], findings: Findings) -> MaskValues:
    """The classes of values or unnamed colors, in their order."""
    chosen = values if _are_grays(values) else [one for one in values if one != NOT_LABELED]
    if names and chosen[-1] >= FIRST_COLOR:
        raise UnclearError(
            f'the masks have colors, such as {_word(chosen[-1])}, but the classes have '
            'names without colors; write class_dict.csv with the '
            'columns name, r, g and b.',
            classes=_named_in_order(chosen, names),
        )
    if names and len(names) != len(chosen):
        shown = ', '.join(map(_word, chosen[:10]))
        if len(chosen) > 10:
            shown += ' ...'
        raise UnclearError(
            f'the masks have the values {shown}, but {len(names)} classes have names, '
            'from class 0; name all of them, or mark pixels without a class by 255.',
            classes=_named_in_order(chosen, names),
        )
    if not names and len(values) == 2 and 0 < values[0] < LEAST_GRAY and NOT_LABELED in values:
        raise UnclearError(
            f'the masks have the values {values[0]} and {NOT_LABELED}, which may be two classes, '
            'or one class and unlabeled pixels; name the classes in classes.txt, or use 0 and 1.',
            classes={str(value): f'class {value}' for value in values},
        )
    classes = tuple(names) or tuple(f'class {_word(value)}' for value in chosen)
    if len(classes) < 2:
        raise InputError(
            f'all pixels of all masks have the value {_word(values[0])}, so there is '
            'nothing to learn; check how the masks were saved.'
        )
    if chosen != list(range(len(chosen))):
        findings.warn_all(
            'mask values, taken as classes in this order',
            (f'{_word(value)} is {name!r}' for value, name in zip(chosen, classes, strict=True)),
        )
    numbers = {value: number for number, value in enumerate(chosen)}
    return MaskValues(classes, {value: numbers.get(value, NOT_LABELED) for value in values})


def _named_in_order(values: list[int], names: list[str]) -> dict[str, str | None]:
    """The name of each value in order, if their numbers are equal."""
    return {_word(value): name for value, name in zip_longest(values, names[: len(values)])}


def _are_grays(values: list[int]) -> bool:
    """True if there are few values far apart, which are grays or colors, including 255."""
    others = [value for value in values if value != NOT_LABELED]
    return len(values) <= MAX_GRAY_VALUES and (len(others) < 2 or max(others) >= LEAST_GRAY)


def _are_smoothed(counts: Counter[int]) -> bool:
    """True if many values have gaps between them, or are the few pixels between two grays."""
    largest, total = max(counts), sum(counts.values())
    two = sum(count for _, count in counts.most_common(2))
    return largest > 2 * len(counts) or (
        largest >= LEAST_GRAY and two > MIN_TWO_GRAYS_SHARE * total
    )


def _word(value: int) -> str:
    return str(value) if value < FIRST_COLOR else f'#{value - FIRST_COLOR:06x}'
