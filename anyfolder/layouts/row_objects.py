"""Objects and classes of images from the rows of tables."""

from collections.abc import Sequence

from anyfolder.readers.findings import Findings
from anyfolder.readers.records import Instance
from anyfolder.readers.tables import NUMBER

from .box_units import BoxUnits
from .class_codes import ClassCodes
from .columns import CORNERS, NUMBERS, OF_SHAPES
from .layout_rows import ImageRows
from .table_rows import ON, Row

SEPARATORS = '|;,'  # separators of several classes in a value; a blank if no value has one of them
TURNED = 'rotated boxes, replaced by the upright rectangle around them'
IGNORED = 'objects of a class that the layout ignores, neither trained on nor counted'


def objects_in(
    rows: ImageRows,
    units: BoxUnits,
    codes: ClassCodes,
    of_image: str | None,
    findings: Findings,
) -> list[Instance]:
    """The objects of an image, as their rows have them.

    Args:
        rows: the rows of the image.
        units: the units of their boxes.
        codes: the codes of the classes.
        of_image: the code of the image, for rows without one.
        findings: collects objects without a class or a box.
    """
    only = codes.classes[0] if len(codes.classes) == 1 else None
    found = []
    for place, row in rows.objects:
        one, code = _instance(row, units, place, findings), row.get('class', of_image)
        if one is None:
            findings.reject('objects have no numeric box or polygon', 'correct them', place)
        elif code is None and only is None:
            remedy = 'add the column class, or a single name in classes'
            findings.reject('objects have no class', remedy, place)
        elif name_object(one, code, only, codes, findings):
            one.crowd = one.crowd or _is_ignored(row)
            found.append(one)
    return found


def name_object(
    found: Instance, code: str | None, only: str | None, codes: ClassCodes, findings: Findings
) -> bool:
    """Give an object the class name of its code, or of the only class; return whether it has one.

    An object of a class that the layout ignores has no name, and is neither trained on nor counted.
    """
    try:
        name = only if code is None else codes.name_of(code)
    except KeyError:
        where = f'{code!r}, {found.origin}'
        findings.reject('objects have a class without a name', codes.remedy(str(code)), where)
        return False
    if name is None:
        findings.warn(IGNORED, f'{code!r}, {found.origin}')
        found.crowd = True
    found.name = name or ''
    return True


def _is_ignored(row: Row) -> bool:
    flags = [NUMBER.fullmatch(row.get(name, '')) for name in ('ignored', 'valid')]
    ignored, valid = (float(flag[0]) if flag else None for flag in flags)
    return (ignored or 0) > 0 or valid == 0


def _instance(row: Row, units: BoxUnits, place: str, findings: Findings) -> Instance | None:
    """An object without its class; None if its values are not a box or polygon."""
    if 'points' in row or 'x1' in row:
        texts = (
            NUMBER.findall(row['points']) if 'points' in row else [row[name] for name in CORNERS]
        )
        points = [*map(float, texts)]
        if 'x1' in row and not _is_upright(points):
            findings.warn(TURNED, place)
        polygon = Instance('', (), [points], origin=place)
        return units.apply(polygon) if len(points) >= 6 else None
    if 'box' in row:
        numbers = [float(text) for text in NUMBER.findall(row['box'])]
        box = Instance('', numbers, origin=place)
        return units.apply(box) if len(numbers) == 4 else None
    values = {name: float(row[name]) for name in OF_SHAPES & NUMBERS & row.keys()}
    return units.of_columns(values, place)


def _is_upright(points: Sequence[float]) -> bool:
    """True if four corners have two values of x and two of y, so that nothing is lost."""
    return len({*points[::2]}) <= 2 and len({*points[1::2]}) <= 2


def labels_in(rows: ImageRows, codes: ClassCodes, mark: str) -> list[str | None]:
    """The names of an image's classes; None for one that the layout ignores.

    Args:
        rows: of the image.
        codes: the codes of the classes.
        mark: the separator of several classes in a value.

    Raises:
        KeyError: for a code without a name.
        ValueError: if the numbers of flags and classes differ.
    """
    names: list[str | None] = []
    for row in rows.labels:
        if row.get('class'):
            names.append(codes.name_of(row['class']))
        if isinstance(several := row.get('classes', ()), tuple):
            names += map(codes.name_of, several)
        else:
            parts = (part.strip(' \'"') for part in several.strip('[]').split(mark))
            names += [codes.name_of(part) for part in parts if part]
        if 'flags' in row:
            flags = NUMBER.findall(row['flags'])
            names += [name for name, flag in zip(codes.classes, flags, strict=True) if flag in ON]
    return list(dict.fromkeys(names))


def separator_of(values: Sequence[str]) -> str:
    """The separator of several classes in the values of a column."""
    return next((mark for mark in SEPARATORS if any(mark in value for value in values)), ' ')
