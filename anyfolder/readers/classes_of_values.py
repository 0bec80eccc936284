"""The class of each number, gray or color in masks.

Programs export masks in several ways. Class numbers stay unchanged, and 255 is a pixel without a
class. A few values far apart, such as 0 and 255, or 0 and 128, are grays, which are classes in
their order. Colors are looked up in a file such as CVAT's ``labelmap.txt``, or are classes in the
order of their values.
"""

from collections import Counter
from collections.abc import Mapping
from itertools import zip_longest
from pathlib import Path

import numpy as np

from anyfolder.errors import InputError, UnclearError

from .findings import Findings
from .mask_classes import NOT_LABELED, MaskValues
from .mask_names import FIRST_COLOR, NamedValues
from .mask_values import MaskProbe, lossy_kind

MAX_CLASSES = 254  # 255 marks pixels without a class
# Smallest value that is a gray level rather than a class number, in masks with few values.
MIN_GRAY = 100
MAX_GRAY_VALUES = 8  # maximum number of gray levels in masks whose classes have no names
DARK_AND_BRIGHT = {'0-127': 'class 0', '128-255': 'class 255'}
MIN_TWO_GRAYS_SHARE = 0.9  # fraction of pixels with the two main grays in a smoothed binary mask


def choose_classes(
    total: MaskProbe, named: NamedValues, findings: Findings, lossy: Path | None = None
) -> MaskValues:
    """The class of each value of masks.

    Args:
        total: the statistics of all masks together.
        named: the names of values, if a file has them.
        findings: collects notes on the values.
        lossy: a mask in a lossy format, see :func:`~.mask_values.lossy_kind`, if there is one.

    Raises:
        InputError: if the values cannot be classes, or their number differs from that of the names.
    """
    values = sorted(total.counts)
    _check_are_classes(values, total.counts, named, lossy)
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
    _warn_unused(chosen, total.counts, findings)
    return chosen


def _check_are_classes(
    values: list[int], counts: Counter[int], named: NamedValues, lossy: Path | None
) -> None:
    """Raise an ``UnclearError`` if the values show that a file format or smoothing changed them."""
    suggested = DARK_AND_BRIGHT if values[-1] < FIRST_COLOR else None
    # A lossy file can only keep classes that are far apart, such as 0 and 255.
    if lossy and min(np.diff(values), default=0) < MIN_GRAY:
        raise UnclearError(
            f'{str(lossy)!r} is a {lossy_kind(lossy)} file, which changes the values of '
            f'masks at edges: they have {len(values)} values, which are not class numbers; save '
            'masks as PNG.',
            classes=suggested,
        )
    unnamed = len(values) > MAX_GRAY_VALUES and not (named.numbers or named.colors)
    if len(values) > MAX_CLASSES + 1 or (unnamed and _are_smoothed(counts)):
        raise UnclearError(
            f'the masks have {len(values)} values, up to {_text_of(values[-1])}, which are '
            'not class numbers; they may be smoothed or JPEG files, which change values: '
            'save masks as PNG with the class number of each pixel, or name the classes in '
            'classes.txt.',
            classes=suggested,
        )


def _warn_unused(chosen: MaskValues, counts: Counter[int], findings: Findings) -> None:
    """Warn of classes without a pixel, and of pixels without a class."""
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
