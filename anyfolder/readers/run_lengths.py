"""Masks as COCO's run lengths: lists of numbers, or the text that pycocotools writes."""

from itertools import accumulate
from typing import Any

import numpy as np


def mask_of(counts: Any, size: tuple[int, int]) -> np.ndarray:
    """The mask (H, W), bool, of run lengths for an image of this width and height.

    The runs go down the columns, and the first is outside of the object.

    Args:
        counts: their lengths, or pycocotools' text or bytes of them.
        size: width and height in pixels.

    Raises:
        ValueError: if they are not as many pixels as the image has.
    """
    runs = np.asarray(_runs_in(counts) if isinstance(counts, (str, bytes)) else counts, int)
    width, height = size
    if (runs < 0).any() or runs.sum() != width * height:
        raise ValueError(f'the run lengths add up to {runs.sum()} pixels, not {width * height}')
    inside = np.arange(len(runs)) % 2 == 1
    return np.repeat(inside, runs).reshape((height, width), order='F')


def _runs_in(text: str | bytes) -> list[int]:
    """The numbers in pycocotools' text.

    A letter has five bits of a number, the lowest first, and a sixth that says whether more
    follow; the last of a number has its sign. From the fourth on, a number is the difference from
    the one two before it (``rleFrString`` in ``maskApi.c``).
    """
    letters = text.encode() if isinstance(text, str) else text
    numbers: list[int] = []
    value = shift = 0
    for letter in letters:
        bits = letter - 48
        value |= (bits & 0x1F) << shift
        shift += 5
        if not bits & 0x20:
            numbers.append(value - (1 << shift) if bits & 0x10 else value)
            value = shift = 0
    if shift:
        raise ValueError('the text of the run lengths breaks off')
    first, odd, even = numbers[:1], numbers[1::2], numbers[2::2]
    runs = [0] * len(numbers)
    runs[:1], runs[1::2], runs[2::2] = first, accumulate(odd), accumulate(even)
    return runs
