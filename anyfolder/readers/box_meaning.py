"""Whether the boxes of a data set are what their format says, judged by all of them together.

A box alone may be anything. All boxes of a data set lie within their images under the right meaning
of their numbers, and many do not under another: the left upper corner taken for the center, corners
for sizes, pixels for shares of the width.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from anyfolder.errors import UnclearError

from .findings import MAX_STRAY_SHARE
from .geometry import BOX_FORMS, rounded
from .records import ImageRecord, Instance, Records

LEAST = 1.0  # pixels of a side; MMDetection leaves out smaller boxes without a word
SLACK = 5e-4  # pixels that a side may lack by the rounding of left + width - left
ROUNDED = 2.0  # pixels by which a box may exceed its image by rounding
ROUNDED_SHARE = 0.125  # share of a side, less for tiny boxes
# Boxes that do not lie in their image, from which on the stated meaning is doubted where another
# one fits all: their number, and of few boxes their share.
MANY_OUTSIDE, SHARE_OUTSIDE = 3, 0.1


class Meaning(NamedTuple):
    """What the four numbers of boxes are, see :class:`~.records.Instance`."""

    form: str
    relative: bool


# How to write boxes of the first form in the second one.
REMEDIES = {
    ('xyxy', 'xywh'): 'subtract left from right and top from bottom',
    ('center', 'xywh'): 'subtract half of the width and height from the center',
    ('xywh', 'xyxy'): 'add left to the width and top to the height',
    ('center', 'xyxy'): 'write the center minus and plus half of the width and height',
    ('xywh', 'center'): 'add half of the width and height to left and top',
    ('xyxy', 'center'): 'write their center, right minus left and bottom minus top',
}
# The fault and its remedy if pixels are stated, and if shares of the image are.
UNITS = (
    ('have values from 0 to 1', 'multiply them by the width and height of their image'),
    (
        'have values in pixels in place of shares of the width and height',
        'divide them by the width and height of their image',
    ),
)
UNIT_WORDS = dict(xywh='size', xyxy='corners', center='center')  # names of forms in a layout
SIZES_OR_CORNERS = {'xywh', 'xyxy'}  # forms that few boxes tell apart, as they differ by far


def check_meaning(records: Records) -> None:
    """Raise a ``InputError`` if another meaning fits all boxes, and the stated one does not.

    Args:
        records: images whose size is known, with objects whose boxes are four finite numbers.
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
    """Whether each box (N, 4) has sides and lies in its image of this size (N, 2): (N)."""
    boxes = np.stack(BOX_FORMS[meaning.form].as_xywh(*numbers.T), axis=-1)
    if meaning.relative:
        boxes = boxes * np.tile(sizes, 2)
    start, sides = boxes[:, :2], boxes[:, 2:]
    least = np.minimum(LEAST, sizes) - SLACK
    beyond = np.clip(ROUNDED_SHARE * sides, SLACK, ROUNDED)
    within = (start >= -beyond) & (start + sides <= sizes + beyond) & (sides >= least)
    return within.all(axis=-1)


def _others(stated: Meaning) -> Iterator[Meaning]:
    """Other meanings, those that people more likely write first."""
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
    """True if nearly all boxes fit under another meaning, and far more than as stated."""
    is_far = other.form == stated.form or {other.form, stated.form} == SIZES_OR_CORNERS
    if outside.sum() < MANY_OUTSIDE and not (is_far and outside.mean() > SHARE_OUTSIDE):
        return False
    wrong = (~_fits(numbers, sizes, other)).sum()
    return wrong <= min(MAX_STRAY_SHARE * len(numbers), outside.sum() / 10)


def _units(meaning: Meaning, found: Instance) -> list[str] | None:
    """A meaning in the words of a layout, None if it has none for it."""
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
    since = f'{outside.sum()} of {len(group)} do not lie in their image otherwise'
    if other.form == stated.form:
        what, remedy = UNITS[stated.relative]
    elif other.relative != stated.relative:
        units = 'shares of the width and height', 'pixels'
        what, remedy = f'seem to be {right}, in {units[stated.relative]}', f'write {written}'
    else:
        what = f'seem to be {right} in place of {written}, since {since}'
        remedy = REMEDIES.get((other.form, stated.form), f'write {written}')
    return (
        f'the boxes {what}, the first is {rounded(found.box)} of {found.origin} in '
        f'{str(record.path)!r}; {remedy}.'
    )
