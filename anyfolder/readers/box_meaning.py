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
SLACK = 5e-4  # tolerance in pixels for the rounding of floats, as in left + width - left
# A box may exceed its image, because coordinates are rounded: by this fraction of its side, but by
# no more than this many pixels.
MAX_EXCESS_SHARE, MAX_EXCESS = 0.125, 2.0
# Other meanings are tried if at least this number of boxes, or in small data more than this
# fraction of them, do not lie in their image.
MANY_OUTSIDE, SHARE_OUTSIDE = 3, 0.1


class Meaning(NamedTuple):
    """The meaning of the four numbers of boxes, see :class:`~.records.Instance`."""

    form: str
    relative: bool


# How to convert boxes from the first form, which they have, to the second, which is stated.
REMEDIES = {
    ('xyxy', 'xywh'): 'subtract left from right and top from bottom',
    ('center', 'xywh'): 'subtract half of the width and height from the center',
    ('xywh', 'xyxy'): 'add left to the width and top to the height',
    ('center', 'xyxy'): 'write the center minus and plus half of the width and height',
    ('xywh', 'center'): 'add half of the width and height to left and top',
    ('xyxy', 'center'): 'write the center, right minus left and bottom minus top',
}
# The fault of the values and its remedy, by whether the format states fractions.
UNITS = {
    False: ('have values from 0 to 1', 'multiply them by the width and height of their image'),
    True: (
        'have values in pixels instead of fractions of the width and height',
        'divide them by the width and height of their image',
    ),
}
# The words of `units` in a layout file (:mod:`anyfolder.layouts.box_units`), by form.
UNIT_WORDS = dict(xywh='size', xyxy='corners', center='center')
# A few boxes suffice to tell these forms apart. A center and an upper left corner differ less.
SIZES_OR_CORNERS = {'xywh', 'xyxy'}


def check_meaning(records: Records) -> None:
    """Raise an ``UnclearError`` if another meaning fits the boxes far better than the stated one.

    Args:
        records: images of known size, with objects whose boxes are four finite numbers.
    """
    boxes: dict[Meaning, list[tuple[Instance, ImageRecord]]] = defaultdict(list)
    for record in records:
        for instance in record.instances:
            if len(instance.box):
                boxes[Meaning(instance.form, instance.relative)].append((instance, record))
    for stated, group in boxes.items():
        numbers = np.array([instance.box for instance, _ in group], float)
        sizes = np.array([record.size for _, record in group], float)
        outside = ~_fits(numbers, sizes, stated)
        if outside.sum() >= MANY_OUTSIDE or outside.mean() > SHARE_OUTSIDE:
            for other in _other_meanings(stated):
                if _is_likelier(other, stated, numbers, sizes, outside):
                    raise UnclearError(
                        _message(other, stated, outside, group),
                        units=_layout_units(other, group[0][0]),
                    )


def _fits(numbers: np.ndarray, sizes: np.ndarray, meaning: Meaning) -> np.ndarray:
    """Whether each box (N, 4) has positive sides and lies in its image of this size (N, 2): (N)."""
    boxes = np.stack(BOX_FORMS[meaning.form].as_xywh(*numbers.T), axis=-1)
    if meaning.relative:
        boxes = boxes * np.tile(sizes, 2)
    start, sides = boxes[:, :2], boxes[:, 2:]
    least = np.minimum(MIN_SIDE, sizes) - SLACK
    excess = np.clip(MAX_EXCESS_SHARE * sides, SLACK, MAX_EXCESS)
    within = (start >= -excess) & (start + sides <= sizes + excess) & (sides >= least)
    return within.all(axis=-1)


def _other_meanings(stated: Meaning) -> Iterator[Meaning]:
    """Other meanings than the stated one, the most likely first."""
    yield Meaning(stated.form, not stated.relative)
    for relative in (stated.relative, not stated.relative):
        yield from (Meaning(form, relative) for form in BOX_FORMS if form != stated.form)


def _is_likelier(
    other: Meaning,
    stated: Meaning,
    numbers: np.ndarray,
    sizes: np.ndarray,
    outside: np.ndarray,
) -> bool:
    """True if nearly all boxes fit with another meaning, and far more than as stated.

    Args:
        other, stated: the two meanings.
        numbers: the boxes (N, 4).
        sizes: width and height of their images (N, 2).
        outside: whether each box does not fit as stated (N).
    """
    # With fewer than MANY_OUTSIDE boxes, only such forms or units are considered.
    few_suffice = other.form == stated.form or {other.form, stated.form} == SIZES_OR_CORNERS
    if outside.sum() < MANY_OUTSIDE and not (few_suffice and outside.mean() > SHARE_OUTSIDE):
        return False
    wrong = (~_fits(numbers, sizes, other)).sum()
    return wrong <= min(MAX_STRAY_SHARE * len(numbers), outside.sum() / 10)


def _layout_units(meaning: Meaning, example: Instance) -> list[str] | None:
    """A meaning in the words of a layout file, or None if it has no words for it."""
    if meaning.form not in UNIT_WORDS:
        return None
    words = [UNIT_WORDS[meaning.form]]
    if meaning.relative:
        words.append('relative')
    elif example.from_1:
        words.append('from 1')
    return words


def _message(
    other: Meaning,
    stated: Meaning,
    outside: np.ndarray,
    group: Sequence[tuple[Instance, ImageRecord]],
) -> str:
    """The fault and the remedy, with the first box outside of its image."""
    instance, record = group[int(outside.argmax())]
    written, right = (BOX_FORMS[meaning.form].words for meaning in (stated, other))
    since = f'otherwise {outside.sum()} of {len(group)} do not lie in their image'
    if other.form == stated.form:
        what, remedy = UNITS[stated.relative]
    elif other.relative != stated.relative:
        unit = 'fractions of the width and height' if other.relative else 'pixels'
        what, remedy = f'seem to be {right}, in {unit}', f'write {written}'
    else:
        what = f'seem to be {right} instead of {written}, since {since}'
        remedy = REMEDIES.get((other.form, stated.form), f'write {written}')
    return (
        f'the boxes {what}, the first is {rounded(instance.box)} of {instance.origin} in '
        f'{str(record.path)!r}; {remedy}.'
    )
