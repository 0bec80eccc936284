"""Masks as COCO run lengths: lists of numbers, or the text that pycocotools writes."""

from itertools import accumulate
from typing import Any

import numpy as np

MAX_BITS = 60  # bits of a run length


def mask_of(counts: Any, size: tuple[int, int]) -> np.ndarray:
    """The mask (H, W), bool, of run lengths for an image of this width and height.

    Runs go down the columns, and the first is outside of the object.

    Args:
        counts: the run lengths, or pycocotools' text or bytes.
        size: width and height in pixels.

    Raises:
        ValueError: if they do not add up to the pixels of the image.
    """
    runs, (width, height) = _runs_of(counts, size), size
    inside = np.arange(len(runs)) % 2 == 1
    return np.repeat(inside, runs).reshape((height, width), order='F')


def box_of_runs(counts: Any, size: tuple[int, int]) -> tuple[int, ...] | None:
    """Left, top, width and height of the pixels of a mask, without decoding it; None if empty.

    Args:
        counts, size: see :func:`mask_of`.

    Raises:
        ValueError: see :func:`mask_of`.
    """
    runs, height = _runs_of(counts, size), size[1]
    ends = runs.cumsum()[1::2]
    lengths = runs[1::2]
    starts, ends = (ends - lengths)[lengths > 0], ends[lengths > 0] - 1  # the first and last pixel
    if not len(starts):
        return None
    left, right = int(starts.min() // height), int(ends.max() // height)
    # A run that continues in the next column reaches the bottom of one and the top of the other.
    spans_columns = (starts // height != ends // height).any()
    top = 0 if spans_columns else int((starts % height).min())
    bottom = height - 1 if spans_columns else int((ends % height).max())
    return left, top, right + 1 - left, bottom + 1 - top


def area_of_runs(counts: Any, size: tuple[int, int]) -> int:
    """The number of pixels of a mask, without decoding it.

    Args:
        counts, size: see :func:`mask_of`.

    Raises:
        ValueError: see :func:`mask_of`.
    """
    return int(_runs_of(counts, size)[1::2].sum())


def _runs_of(counts: Any, size: tuple[int, int]) -> np.ndarray:
    """The run lengths, checked against the number of pixels."""
    runs = np.asarray(_runs_in(counts) if isinstance(counts, (str, bytes)) else counts, np.int64)
    pixels = size[0] * size[1]
    if runs.ndim != 1 or (runs < 0).any() or (runs > pixels).any():
        raise ValueError(f'run lengths are not numbers from 0 to {pixels}, the pixels of the image')
    if runs.sum() != pixels:  # after the comparison of each, so that the sum cannot overflow
        raise ValueError(f'the run lengths add up to {runs.sum()} pixels, not {pixels}')
    return runs


def _runs_in(text: str | bytes) -> list[int]:
    """The numbers in pycocotools' text.

    A letter has five bits of a number, the lowest first, and a sixth for whether more follow; the
    last letter of a number has its sign. From the fourth on, a number is the difference from the
    run length two before it (``rleFrString`` in ``maskApi.c``).

    Raises:
        ValueError: if the text is truncated, or a number has too many bits.
    """
    letters = text.encode() if isinstance(text, str) else text
    numbers: list[int] = []
    value = shift = 0
    for letter in letters:
        bits = letter - 48
        value |= (bits & 0x1F) << shift
        shift += 5
        if shift > MAX_BITS:
            raise ValueError('a run length has more bits than any image needs')
        if not bits & 0x20:
            numbers.append(value - (1 << shift) if bits & 0x10 else value)
            value = shift = 0
    if shift:
        raise ValueError('the text of the run lengths is truncated')
    first, odd, even = numbers[:1], numbers[1::2], numbers[2::2]
    runs = [0] * len(numbers)
    runs[:1], runs[1::2], runs[2::2] = first, accumulate(odd), accumulate(even)
    return runs
