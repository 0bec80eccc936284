"""Check whether boxes have the form that their format states, from all boxes of a data set.

A single box is ambiguous. With the correct meaning of the numbers, all boxes of a data set lie
within their images; with a wrong one, many do not: if the upper left corner is taken for the
center, corners for sizes, or pixels for fractions of the width.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from anyfolder.errors import UnclearError

from .findings import MAX_STRAY_SHARE
from .geometry import BOX_FORMS, rounded
from .records import ImageRecord, Instance, Records

MIN_SIDE = 1.0  # pixels of a side; MMDetection silently leaves out smaller boxes
SLACK = 5e-4  # pixels that a side may be short by rounding of left + width - left
ROUNDED = 2.0  # pixels by which a box may exceed its image by rounding
ROUNDED_SHARE = 0.125  # fraction of a side, less for tiny boxes
# Above this number of boxes outside of their image, or this fraction of few boxes, the stated
# meaning is doubted if another one fits all.
MANY_OUTSIDE, SHARE_OUTSIDE = 3, 0.1


class Meaning(NamedTuple):
    """The meaning of the four numbers of boxes, see :class:`~.records.Instance`."""

    form: str
    relative: bool


# How to convert boxes from the first form to the second.
REMEDIES = {
    ('xyxy', 'xywh'): 'subtract left from right and top from bottom',
    ('center', 'xywh'): 'subtract half of the width and height from the center',
    ('xywh', 'xyxy'): 'add left to the width and top to the height',
    ('center', 'xyxy'): 'write the center minus and plus half of the width and height',
    ('xywh', 'center'): 'add half of the width and height to left and top',
    ('xyxy', 'center'): 'write the center, right minus left and bottom minus top',
}
# The fault and its remedy if the format states pixels, and if it states fractions.
UNITS = (
    ('have values from 0 to 1', 'multiply them by the width and height of their image'),
    (
        'have values in pixels instead of fractions of the width and height',
        'divide them by the width and height of their image',
    ),
)
UNIT_WORDS = dict(xywh='size', xyxy='corners', center='center')  # names of forms in a layout
SIZES_OR_CORNERS = {'xywh', 'xyxy'}  # forms that even a few boxes distinguish


def check_meaning(records: Records) -> None:
    """Raise an ``InputError`` if another meaning fits all boxes, and the stated one does not.

    Args:
        records: images of known size, with objects whose boxes are four finite numbers.
    """
    boxes: dict[Meaning, list[tuple[Instance, ImageRecord]]] = defaultdict(list)
    for record in records:
        for found in record.instances:
            if len(found.box):
                boxes[Meaning(found.form, found.relative)].append((found, record))
    for stated, group in boxes.items():
        numbers = np.array([found.box for found, _ in group], float)
        sizes = np.array([record.size for _, record in group], float)
        outside = ~_fits(numbers, sizes, stated)
        if outside.sum() >= MANY_OUTSIDE or outside.mean() > SHARE_OUTSIDE:
            for other in _others(stated):
                if _is_right(other, stated, numbers, sizes, outside):
                    raise UnclearError(
                        _sentence(other, stated, outside, group),
                        units=_units(other, group[0][0]),
                    )


def _fits(numbers: np.ndarray, sizes: np.ndarray, meaning: Meaning) -> np.ndarray:
    """Whether each box (N, 4) has positive sides and lies in its image of this size (N, 2): (N)."""
    boxes = np.stack(BOX_FORMS[meaning.form].as_xywh(*numbers.T), axis=-1)
    if meaning.relative:
        boxes = boxes * np.tile(sizes, 2)
    start, sides = boxes[:, :2], boxes[:, 2:]
    least = np.minimum(MIN_SIDE, sizes) - SLACK
    beyond = np.clip(ROUNDED_SHARE * sides, SLACK, ROUNDED)
    within = (start >= -beyond) & (start + sides <= sizes + beyond) & (sides >= least)
    return within.all(axis=-1)


def _others(stated: Meaning) -> Iterator[Meaning]:
    """Other meanings, the most common first."""
    yield Meaning(stated.form, not stated.relative)
    for relative in (stated.relative, not stated.relative):
        yield from (Meaning(form, relative) for form in BOX_FORMS if form != stated.form)


def _is_right(
    other: Meaning,
    stated: Meaning,
    numbers: np.ndarray,
    sizes: np.ndarray,
    outside: np.ndarray,
) -> bool:
    """True if nearly all boxes fit with another meaning, and far more than as stated."""
    is_far = other.form == stated.form or {other.form, stated.form} == SIZES_OR_CORNERS
    if outside.sum() < MANY_OUTSIDE and not (is_far and outside.mean() > SHARE_OUTSIDE):
        return False
    wrong = (~_fits(numbers, sizes, other)).sum()
    return wrong <= min(MAX_STRAY_SHARE * len(numbers), outside.sum() / 10)


def _units(meaning: Meaning, found: Instance) -> list[str] | None:
    """A meaning in the words of a layout, or None if layouts have no words for it."""
    if meaning.form not in UNIT_WORDS:
        return None
    more = 'relative' if meaning.relative else 'from 1' if found.from_1 else ''
    return [UNIT_WORDS[meaning.form], *filter(None, [more])]


def _sentence(
    other: Meaning,
    stated: Meaning,
    outside: np.ndarray,
    group: Sequence[tuple[Instance, ImageRecord]],
) -> str:
    found, record = group[int(outside.argmax())]
    written, right = (BOX_FORMS[meaning.form].words for meaning in (stated, other))
    since = f'otherwise {outside.sum()} of {len(group)} do not lie in their image'
    if other.form == stated.form:
        what, remedy = UNITS[stated.relative]
    elif other.relative != stated.relative:
        units = 'fractions of the width and height', 'pixels'
        what, remedy = f'seem to be {right}, in {units[stated.relative]}', f'write {written}'
    else:
        what = f'seem to be {right} instead of {written}, since {since}'
        remedy = REMEDIES.get((other.form, stated.form), f'write {written}')
    return (
        f'the boxes {what}, the first is {rounded(found.box)} of {found.origin} in '
        f'{str(record.path)!r}; {remedy}.'
    )
