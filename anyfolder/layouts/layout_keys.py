"""The keys of a layout file, and functions that check and read their values.

:data:`KEYS` is the result: :func:`~.layout.layout_of` calls its function for each key of a file.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from anyfolder.errors import InputError
from anyfolder.readers.splits import SPLITS

from .box_units import WORDS, BoxUnits
from .class_codes import ClassCodes
from .columns import IGNORED_REST, MEANINGS, NOTHING, SHAPE_COLUMNS, Columns
from .layout_formats import FORMATS, TASKS
from .nearest import did_you_mean
from .path_pattern import PathPattern

METERS = {'meters': 1.0, 'centimeters': 1e-2, 'millimeters': 1e-3}  # meters per unit, by word
# A key of ``columns`` with one of these characters is a pattern of files rather than a column.
FILE_MARKS = './*'
FILE_KEY = 'file'  # the key of ``classes`` for a file with further classes


def choose(word: Any, known: Collection[str], where: str) -> str:
    """Check that a word is known, and return it.

    Raises:
        InputError: for any other word, with the nearest known one.
    """
    if not isinstance(word, str) or word not in known:
        named = ', '.join(known)
        raise InputError(f'{where}: {word!r} is not one of {named}{did_you_mean(str(word), known)}')
    return word


def texts(value: Any, where: str) -> tuple[str, ...]:
    """The texts of a value: one, or a list of one or more.

    Raises:
        InputError: for any other value, or an empty text.
    """
    items = value if isinstance(value, list) else [value]
    if not items or not all(isinstance(item, str) and item.strip() for item in items):
        raise InputError(
            f'{where}: {value!r} is neither text nor a list of text; correct it, and quote '
            'values that begin with {, * or #.'
        )
    return tuple(items)


def _patterns(value: Any, where: str) -> tuple[PathPattern, ...]:
    return tuple(PathPattern(text, where) for text in texts(value, where))


# Each of the following functions is called for the key of its name, with the value of that key and
# its position for messages. It returns the attributes of the `Layout` that the value states.


def _when(value: Any, where: str) -> dict[str, Any]:
    return dict(when=texts(value, where))


def _task(value: Any, where: str) -> dict[str, Any]:
    return dict(task=tuple(choose(word, TASKS, where) for word in texts(value, where)))


def _format(value: Any, where: str) -> dict[str, Any]:
    return dict(format=choose(value, FORMATS, where))


def _images(value: Any, where: str) -> dict[str, Any]:
    return dict(images=_patterns(value, where))


def _labels(value: Any, where: str) -> dict[str, Any]:
    return dict(labels=_patterns(value, where))


def _note(value: Any, where: str) -> dict[str, Any]:
    return dict(note=' '.join(' '.join(texts(value, where)).split()))


def _columns(value: Any, where: str) -> dict[str, Any]:
    """Column names in order, titles by name, or either of them by a pattern of files."""
    by_file = isinstance(value, dict) and any({*FILE_MARKS} & {*key} for key in value)
    tables = value if by_file else {None: value}
    by_pattern = [
        (None if files is None else PathPattern(files, where), _columns_of(columns, where))
        for files, columns in tables.items()
    ]
    # A column without a meaning is a key that joins tables, so two of them must have it.
    joining = [name for _, columns in by_pattern for name in columns.names if name not in MEANINGS]
    if unshared := next((name for name in joining if joining.count(name) == 1), None):
        raise InputError(
            f'{where}: {unshared!r} is not a column with a meaning ({", ".join(MEANINGS)}), nor '
            f'does it join two tables; write {NOTHING} for an unused '
            f'value{did_you_mean(unshared, MEANINGS)}'
        )
    return dict(columns=tuple(by_pattern))


def _columns_of(value: Any, where: str) -> Columns:
    """The columns of a table: titles by name for one with a header, or names in order."""
    if isinstance(value, dict):
        titles = {name: title for name, title in value.items() if isinstance(title, str)}
        title_lists = {name: title for name, title in value.items() if name not in titles}
        if title_lists.keys() - {'classes'}:
            raise InputError(f'{where}: only classes can have several titles; correct it.')
        class_titles = texts(title_lists['classes'], where) if title_lists else ()
        columns = Columns(titles=titles, class_titles=class_titles)
        if not columns.names:
            raise InputError(f'{where} names no column; write lines such as image: file_name.')
    else:
        order = texts(value, where)
        columns = Columns(order)
        twice = [
            name for name in order if name not in (NOTHING, IGNORED_REST) and order.count(name) > 1
        ]
        if twice or IGNORED_REST in order[:-1] or not columns.names:
            what = (
                f'names {twice[0]!r} twice'
                if twice
                else f'has {IGNORED_REST} before the end, or names no column'
            )
            raise InputError(f'{where} {what}; correct it.')
    if SHAPE_COLUMNS & columns.names and columns.shape is None:
        raise InputError(
            f'{where}: {", ".join(sorted(SHAPE_COLUMNS & columns.names))} are no box; give left, '
            'top, right and bottom, or width and height instead of the last two, or x, y, width '
            'and height, or box, or points, or x1, y1 to x4, y4.'
        )
    return columns


def _splits(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError(
            f'{where}: {value!r} is not a mapping; write lines such as train: train.txt.'
        )
    splits = {
        choose(split, SPLITS, where): texts(items, f'{where}: {split}')
        for split, items in value.items()
        if items is not None
    }
    first: dict[str, str] = {}
    for split, items in splits.items():
        for item in items:
            if first.setdefault(item, split) != split:
                raise InputError(
                    f'{where}: {item!r} is in {first[item]} and in {split}; keep one of them.'
                )
    return dict(splits=splits)


def _classes(value: Any, where: str) -> dict[str, Any]:
    """A list of names, a file, or the name of each code."""
    if isinstance(value, str):
        return dict(names=PathPattern(value, where), classes=ClassCodes.of_codes({}, where))
    if isinstance(value, list):
        return dict(classes=ClassCodes.of_names(texts(value, where), where))
    named = {code: name for code, name in value.items() if code != FILE_KEY}
    if not all(name is None or isinstance(name, str) for name in named.values()):
        raise InputError(f'{where}: each code needs one name, or ~ to be ignored; correct it.')
    values: dict[str, Any] = dict(classes=ClassCodes.of_codes(named, where))
    if FILE_KEY in value:
        files = _patterns(value[FILE_KEY], where)
        if len(files) > 1:
            raise InputError(f'{where}: {FILE_KEY} has several patterns; give one.')
        values['names'] = files[0]
    return values


def _units(value: Any, where: str) -> dict[str, Any]:
    """Words for the units of boxes, or the meters per unit of depth."""
    words = texts(value, where)
    if len(words) > 1:  # depth has a single word or number
        return dict(units=BoxUnits.of([choose(word, WORDS, where) for word in words], where))
    [word] = words
    if word in METERS:
        return dict(meters=METERS[word])
    try:
        meters = float(word)
    except ValueError:
        choose(word, [*WORDS, *METERS], where)
        return dict(units=BoxUnits.of([word], where))
    if not 0 < meters < float('inf'):
        raise InputError(f'{where}: {value!r} is not a number of meters per unit; correct it.')
    return dict(meters=meters)


# The keys of a layout, each with the function that reads its value.
KEYS: Mapping[str, Callable[[Any, str], dict[str, Any]]] = {
    'when': _when,
    'task': _task,
    'format': _format,
    'images': _images,
    'labels': _labels,
    'columns': _columns,
    'splits': _splits,
    'classes': _classes,
    'units': _units,
    'note': _note,
}
