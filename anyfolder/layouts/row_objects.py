"""Read the objects and the classes of an image from the rows of tables."""

from collections.abc import Sequence

from anyfolder.readers.findings import Findings
from anyfolder.readers.records import Instance
from anyfolder.readers.tables import NUMBER

from .box_units import BoxUnits
from .class_codes import ClassCodes
from .columns import CORNERS, NUMBER_COLUMNS, SHAPE_COLUMNS
from .layout_rows import ImageRows
from .row_values import ON, Row

# Separators of several classes in a value; a space is one if no value of the column has these.
SEPARATORS = '|;,'
# A rotated box is a polygon here, whose upright rectangle `to_pixels` takes for the box.
ROTATED = 'rotated boxes, replaced by the upright rectangle around them'
IGNORED = 'objects of a class that the layout ignores, neither trained on nor counted'
FLAGS = dict(true='1', yes='1', false='0', no='0')  # words for the numbers of flags


def objects_in(
    rows: ImageRows,
    units: BoxUnits,
    codes: ClassCodes,
    image_code: str | None,
    findings: Findings,
) -> list[Instance]:
    """The objects of an image, as their rows have them.

    Args:
        rows: the rows of the image.
        units: the units of their boxes.
        codes: the codes of the classes.
        image_code: the class code of the image, for rows without a code.
        findings: collects objects without a class or a box.
    """
    only_name = codes.classes[0] if len(codes.classes) == 1 else None
    instances = []
    for position, row in rows.objects:
        instance = _read_object(row, units, position, findings)
        # An empty value is no class, unless `classes` name it, as by '*'.
        code = row.get('class') or image_code or row.get('class')
        if instance is None:
            findings.reject('objects have no numeric box or polygon', 'correct them', position)
        elif code is None and only_name is None:
            remedy = 'add the column class, or a single name in classes'
            findings.reject('objects have no class', remedy, position)
        else:
            instance.crowd = _is_ignored(row)
            if set_class_name(instance, code, codes, findings, only_name):
                instances.append(instance)
    return instances


def set_class_name(
    instance: Instance,
    code: str | None,
    codes: ClassCodes,
    findings: Findings,
    only_name: str | None = None,
) -> bool:
    """Give an object the class name of its code, or ``only_name`` without a code.

    An object of a class that the layout ignores gets no name, and is neither trained on nor
    counted.

    Returns:
        False if the object is rejected, since its code is empty or has no name.
    """
    try:
        name = only_name if code is None else codes.name_of(code)
    except KeyError:
        where = f'{code!r}, {instance.origin}'
        findings.reject('objects have a class without a name', codes.remedy(str(code)), where)
        return False
    if name == '' and not instance.crowd:
        findings.reject('objects have no class', 'name it', instance.origin)
        return False
    if name is None:
        findings.warn(IGNORED, f'{code!r}, {instance.origin}')
        instance.crowd = True
    instance.name = name or ''
    return True


def _is_ignored(row: Row) -> bool:
    """Whether the column ``ignored`` or ``valid`` says that the object of a row is ignored."""
    texts = (row.get(name, '').casefold() for name in ('ignored', 'valid'))
    flags = [NUMBER.fullmatch(FLAGS.get(text, text)) for text in texts]
    ignored, valid = (float(flag[0]) if flag else None for flag in flags)
    return (ignored or 0) > 0 or valid == 0


def _read_object(row: Row, units: BoxUnits, position: str, findings: Findings) -> Instance | None:
    """An object without its class; None if its values are not a box or polygon.

    A polygon is preferred to a box, if the row has both. Corners ``x1, y1, ...`` become a polygon,
    since their box may be rotated.
    """
    has_corners = row.keys() >= {*CORNERS}
    if row.get('points') or has_corners:
        texts = (
            NUMBER.findall(row['points']) if row.get('points') else [row[name] for name in CORNERS]
        )
        points = [*map(float, texts)]
        if has_corners and not _is_upright(points):
            findings.warn(ROTATED, position)
        polygon = Instance(name='', box=(), segmentation=[points], origin=position)
        return units.apply(polygon) if len(points) >= 6 else None
    if row.get('box'):
        numbers = [float(text) for text in NUMBER.findall(row['box'])]
        box = Instance(name='', box=numbers, origin=position)
        return units.apply(box) if len(numbers) == 4 else None
    values = {name: float(row[name]) for name in SHAPE_COLUMNS & NUMBER_COLUMNS & row.keys()}
    return units.of_columns(values, position)


def _is_upright(points: Sequence[float]) -> bool:
    """True if four corners have two values of x and two of y: an upright rectangle."""
    return len({*points[::2]}) <= 2 and len({*points[1::2]}) <= 2


def labels_in(rows: ImageRows, codes: ClassCodes, separator: str) -> list[str | None]:
    """The names of an image's classes; None for one that the layout ignores.

    Args:
        rows: the rows of the image.
        codes: the codes of the classes.
        separator: the separator of several classes in a value.

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
            parts = (part.strip(' \'"') for part in several.strip('[]').split(separator))
            names += [codes.name_of(part) for part in parts if part]
        if 'flags' in row:
            # `strict` raises the ValueError for another number of flags than of classes.
            flags = NUMBER.findall(row['flags'])
            names += [name for name, flag in zip(codes.classes, flags, strict=True) if flag in ON]
    return list(dict.fromkeys(names))


def separator_of(values: Sequence[str]) -> str:
    """The separator of several classes in the values of a column."""
    return next((mark for mark in SEPARATORS if any(mark in value for value in values)), ' ')
