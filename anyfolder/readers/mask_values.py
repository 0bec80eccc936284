"""The class of each number, gray or color in masks.

Programs export masks in several ways. Class numbers stay unchanged, and 255 is a pixel without a
class. A few values far apart, such as 0 and 255, or 0 and 128, are grays, which are classes in
their order. Colors are looked up in a file such as CVAT's ``labelmap.txt``, or are classes in the
order of their values.
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
from anyfolder.pixels.image_headers import check_decoding_cost, open_photograph

from .findings import Findings
from .mask_classes import NOT_LABELED, MaskValues
from .mask_names import FIRST_COLOR, NamedValues

MAX_CLASSES = 254  # 255 marks pixels without a class
# Smallest value that is a gray level rather than a class number, in masks with few values.
MIN_GRAY = 100
MAX_GRAY_VALUES = 8  # maximum number of gray levels in masks whose classes have no names
DARK_AND_BRIGHT = {'0-127': 'class 0', '128-255': 'class 255'}
MIN_TWO_GRAYS_SHARE = 0.9  # fraction of pixels with the two main grays in a smoothed binary mask
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


def choose_classes(
    total: MaskProbe, named: NamedValues, findings: Findings, lossy: Path | None = None
) -> MaskValues:
    """The class of each value of masks.

    Args:
        total: the statistics of all masks together.
        named: the names of values, if a file has them.
        findings: collects notes on the values.
        lossy: a mask in a lossy format, see :func:`lossy_kind`, if there is one.

    Raises:
        InputError: if the values cannot be classes, or their number differs from that of the names.
    """
    counts, values = total.counts, sorted(total.counts)
    unnamed = len(values) > MAX_GRAY_VALUES and not (named.numbers or named.colors)
    # A lossy file can only keep classes that are far apart, such as 0 and 255.
    if lossy and min(np.diff(values), default=0) < MIN_GRAY:
        raise UnclearError(
            f'{str(lossy)!r} is a {lossy_kind(lossy)} file, which changes the values of '
            f'masks at edges: they have {len(values)} values, which are not class numbers; save '
            'masks as PNG.',
            classes=DARK_AND_BRIGHT if values[-1] < FIRST_COLOR else None,
        )
    if len(values) > MAX_CLASSES + 1 or (unnamed and _are_smoothed(counts)):
        raise UnclearError(
            f'the masks have {len(values)} values, up to {_text_of(values[-1])}, which are '
            'not class numbers; they may be smoothed or JPEG files, which change values: '
            'save masks as PNG with the class number of each pixel, or name the classes in '
            'classes.txt.',
            classes=DARK_AND_BRIGHT if values[-1] < FIRST_COLOR else None,
        )
    findings.warn_all(
        'mask values mainly at edges between two others, as created by interpolation; '
        'if so, resize masks by nearest neighbor',
        (
            _text_of(value)
            for value, parts in total.parts.items()
            if 2 * total.at_edges[value] >= parts
        ),
    )
    chosen = _classes_by_name(values, named) or _classes_in_order(
        values, [*named.numbers.values()], findings
    )
    empty = sorted({*range(len(chosen.classes))} - {*chosen.numbers.values()})
    findings.warn_all(
        'classes without a pixel in any mask: no pixel of', (chosen.classes[i] for i in empty)
    )
    unlabeled = [value for value, number in chosen.numbers.items() if number == NOT_LABELED]
    if unlabeled:
        share = sum(counts[value] for value in unlabeled) / sum(counts.values())
        findings.warn(
            f'masks with pixels without a class, value {", ".join(map(_text_of, unlabeled))}',
            f'{100 * share:.1f} % of all pixels',
        )
    return chosen


def _classes_by_name(values: list[int], named: NamedValues) -> MaskValues | None:
    """The classes of the colors or numbers that a file names, unless the numbers are grays.

    Raises:
        InputError: for a color without a name, or a class whose number no mask can hold.
    """
    labeled = {*values} - {NOT_LABELED}
    names: Mapping[int, str] = {}
    if len(labeled) > 1 and labeled <= named.numbers.keys():
        names = named.numbers
    elif named.colors:
        names = named.colors
        if unknown := [value for value in values if value not in names]:
            raise UnclearError(
                f'the masks have the value {_text_of(unknown[0])}, which {str(named.file)!r} '
                'does not name; add its color.',
                classes={_text_of(value): names.get(value) for value in [*names, *unknown]},
            )
    if not names:
        return None
    classes = tuple(dict.fromkeys(names.values()))
    numbers = {value: classes.index(names[value]) for value in values if value in names}
    last = max(numbers, key=lambda value: numbers[value])
    if numbers[last] > MAX_CLASSES:
        raise InputError(
            f'the masks have pixels of {names[last]!r}, which is class {numbers[last]} of '
            f'{str(named.file)!r}, but the numbers of classes end at {MAX_CLASSES}; name only '
            'classes that have pixels, in class_dict.csv with the columns id and name instead.'
        )
    return MaskValues(
        classes,
        {value: numbers.get(value, NOT_LABELED) for value in values},
        by_color=bool(named.colors),
    )


def _classes_in_order(values: list[int], names: list[str], findings: Findings) -> MaskValues:
    """The classes of values or unnamed colors, in their order.

    Raises:
        InputError: if the number of names differs, if it is not clear which class a value is, or if
            there is only one.
    """
    labeled = [value for value in values if value != NOT_LABELED]
    chosen = values if _are_grays(values) else labeled
    if names and chosen[-1] >= FIRST_COLOR:
        raise UnclearError(
            f'the masks have colors, such as {_text_of(chosen[-1])}, but the classes have '
            'names without colors; write class_dict.csv with the '
            'columns name, r, g and b.',
            classes=_named_in_order(chosen, names),
        )
    if names and len(names) != len(chosen):
        shown = ', '.join(map(_text_of, chosen[:10]))
        if len(chosen) > 10:
            shown += ' ...'
        raise UnclearError(
            f'the masks have the values {shown}, but {len(names)} classes have names, '
            'from class 0; name all of them, or mark pixels without a class by 255.',
            classes=_named_in_order(chosen, names),
        )
    if not names and len(values) == 2 and 0 < values[0] < MIN_GRAY and NOT_LABELED in values:
        raise UnclearError(
            f'the masks have the values {values[0]} and {NOT_LABELED}, which may be two classes, '
            'or one class and unlabeled pixels; name the classes in classes.txt, or use 0 and 1.',
            classes={str(value): f'class {value}' for value in values},
        )
    classes = tuple(names) or tuple(f'class {_text_of(value)}' for value in chosen)
    if len(classes) < 2:
        raise InputError(
            f'all pixels of all masks have the value {_text_of(values[0])}, so there is '
            'nothing to learn; check how the masks were saved.'
        )
    if chosen != list(range(len(chosen))):
        findings.warn_all(
            'mask values, taken as classes in this order',
            (f'{_text_of(value)} is {name!r}' for value, name in zip(chosen, classes, strict=True)),
        )
    numbers = {value: number for number, value in enumerate(chosen)}
    return MaskValues(classes, {value: numbers.get(value, NOT_LABELED) for value in values})


def _named_in_order(values: list[int], names: list[str]) -> dict[str, str | None]:
    """The name of each value in order; None for further values."""
    return {_text_of(value): name for value, name in zip_longest(values, names[: len(values)])}


def _are_grays(values: list[int]) -> bool:
    """True if there are few values far apart, which are grays or colors, including 255."""
    others = [value for value in values if value != NOT_LABELED]
    return len(values) <= MAX_GRAY_VALUES and (len(others) < 2 or max(others) >= MIN_GRAY)


def _are_smoothed(counts: Counter[int]) -> bool:
    """True if many values have gaps between them, or only few pixels have others than two grays."""
    largest, total = max(counts), sum(counts.values())
    main = sum(count for _, count in counts.most_common(2))
    return largest > 2 * len(counts) or (largest >= MIN_GRAY and main > MIN_TWO_GRAYS_SHARE * total)


def _text_of(value: int) -> str:
    """A value as text: a number, or a color such as ``#ff0000``."""
    return str(value) if value < FIRST_COLOR else f'#{value - FIRST_COLOR:06x}'
