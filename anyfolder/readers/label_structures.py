"""Values in a label column that are a structure (JSON, XML, Python lists), not a name.

Labeling programs and pandas write such cells. The class names in them are read; structures without
names, such as boxes or vectors, are refused with a remedy.
"""

import re
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from anyfolder.bounded import json_in
from anyfolder.errors import InputError, UnclearError
from anyfolder.wording import option

from .class_names import class_name
from .tables import TABLE_SUFFIXES

BRACKETS = ('[', '{', '(')
# A Python tuple or set.
SEQUENCE = re.compile(r"""[({]\s*((['"]).*\2)\s*(?:,\s*)?[)}]""", re.DOTALL)
# Looks like JSON: if it cannot be parsed, it is damaged, not a name.
CUT_OFF = re.compile(r'[\[{]\s*[\[{"]')
XML = re.compile(r'<(\w+)\b[^>]*(/>|>.*</\1>)', re.DOTALL)
PAIRS = re.compile(r'(\d+ \d+ )+\d+ \d+')  # starts and lengths, as in Kaggle's masks
SHOWN_CHARACTERS = 80  # maximum number of characters of a value that a message quotes
# Multi-hot vectors in any notation: [0, 1, 0], 0 1 0, 0;1;0.
VECTOR = re.compile(r'[\[(]?\s*[01](\.0*)?([\s,;|]+[01](\.0*)?)+\s*[\])]?')
NAME_KEYS = ('choices', 'label', 'labels', 'name', 'class', 'category')
REGION_KEYS = {'x', 'y', 'width', 'height', 'bbox', 'box', 'points', 'segmentation', 'rle'}


class Refusal(NamedTuple):
    """What a structure without names is, and the remedy.

    In the remedy, ``{task}`` and ``{segmentation}`` are the options that select detection and
    segmentation, as the caller spells them (:func:`~anyfolder.wording.option`).
    """

    what: str
    remedy: str


JSON_WITHOUT_NAMES = Refusal('JSON', 'write the class names instead')
XML_ELEMENTS = Refusal('XML', 'write the class names instead')
REGIONS = Refusal(
    'JSON of regions',
    'export these as COCO or YOLO and give {task}, or write one name for each image',
)
RUN_LENGTHS = Refusal(
    'run lengths of masks', 'draw these as masks in PNG files, for {segmentation}'
)
VECTORS = Refusal(
    'vectors of 0 and 1',
    'write the class names instead, with | between several, or a column of 0 and '
    '1 for each class with its name as the title',
)


class NoNamesError(ValueError):
    """A structure without names.

    Attributes:
        refusal: what it is, and the remedy.
    """

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.what)
        self.refusal = refusal


def structure_reader(
    values: Collection[str], column: str, file: Path
) -> Callable[[str], list[str] | None]:
    """A function that returns the names in a value; None if the value is not a structure.

    Structures are lists of names, Label Studio's ``{"choices": [...]}``, and ``{name: 0 or 1}``.

    Args:
        values: all values of the column.
        column: the title of the column.
        file: the table.

    Raises:
        InputError: at once if a structure in the column does not contain class names.
    """
    are_vectors = all(map(VECTOR.fullmatch, values)) and len({*map(_vector_length, values)}) == 1
    are_run_lengths = bool(values) and all(map(PAIRS.fullmatch, values))
    if are_vectors or are_run_lengths:
        refusal = VECTORS if are_vectors else RUN_LENGTHS
        raise InputError(_sentence(refusal, next(iter(values)), column, file))
    names_of: dict[str, list[str]] = {}
    for value in values:
        try:
            if XML.fullmatch(value):
                raise NoNamesError(XML_ELEMENTS)
            if value.startswith(BRACKETS) and (content := _parse(value, file)) is not None:
                names_of[value] = [class_name(name) for name in _names(content)]
        except NoNamesError as error:
            # JSON without names, flags and regions may have names under a key of its own, as in
            # {"species": "cat"}. In a layout, `column.key` is the value of a key in JSON cells.
            may_have_key = error.refusal == JSON_WITHOUT_NAMES
            key = _key_of_names(values, file) if may_have_key else ''
            sentence = _sentence(error.refusal, value, column, file)
            if key and file.suffix.lower() in TABLE_SUFFIXES:
                columns = {'class': f'{column}.{key}'}
                raise UnclearError(
                    sentence, format='table', labels=[file], columns=columns
                ) from None
            raise InputError(sentence) from error
    return names_of.get


def _sentence(refusal: Refusal, value: str, column: str, file: Path) -> str:
    """The message for a column with such a value."""
    remedy = refusal.remedy.format(
        task=option('task', 'detection'), segmentation=option('task', 'segmentation')
    )
    shown = value if len(value) <= SHOWN_CHARACTERS else f'{value[:SHOWN_CHARACTERS]}...'
    return (
        f'the column {column!r} of {str(file)!r} has {refusal.what} such as {shown}, but '
        f'labels must be names; {remedy}.'
    )


def _vector_length(text: str) -> int:
    return len(re.findall(r'[01](?:\.0*)?', text))


def _parse(value: str, file: Path) -> Any:
    """The content of JSON, or of Python lists, tuples, sets and dicts of text; None for other text.

    Raises:
        NoNamesError: for damaged JSON.
    """
    sequence = SEQUENCE.fullmatch(value)
    texts = (value, f'[{sequence[1]}]' if sequence else value)
    for text in dict.fromkeys((*texts, *(text.replace("'", '"') for text in texts))):
        with suppress(InputError):
            return json_in(text, file)
    if CUT_OFF.match(value):
        raise NoNamesError(JSON_WITHOUT_NAMES)
    return None


def _key_of_names(values: Collection[str], file: Path) -> str:
    """The first key under which every value, a dict, has a text; empty without one."""
    with suppress(NoNamesError):  # a damaged file
        dicts = [_parse(value, file) for value in values]
        if all(isinstance(item, Mapping) for item in dicts):
            keys = (
                key for key in dicts[0] if all(isinstance(item.get(key), str) for item in dicts)
            )
            return str(next(keys, ''))
    return ''


def _names(content: Any) -> list[str]:
    """The names in a structure.

    Raises:
        NoNamesError: if it has none.
    """
    if isinstance(content, (str, int, float)) and not isinstance(content, bool):
        return [str(content)]
    if isinstance(content, list):
        return [name for item in content for name in _names(item)]
    if not isinstance(content, Mapping):
        raise NoNamesError(JSON_WITHOUT_NAMES)
    geometry = REGION_KEYS & {str(key).casefold() for key in content}
    are_flags = all(isinstance(flag, (int, float)) and flag in (0, 1) for flag in content.values())
    if content and are_flags and len(geometry) < 2:  # one such key may be a class: {'box': 1}
        return [str(name) for name, flag in content.items() if flag]
    if geometry:
        raise NoNamesError(REGIONS)
    for key in NAME_KEYS:
        if key in content:
            return [] if content[key] is None else _names(content[key])
    raise NoNamesError(JSON_WITHOUT_NAMES)


def text_of_key(text: str, key: str) -> str:
    """The value of a key in JSON or in a Python dict, as text; empty without it.

    For ``column.key`` in a layout.
    """
    with suppress(NoNamesError):
        content = _parse(text, Path())
        value = content.get(key) if isinstance(content, Mapping) else None
        return '' if value is None else str(value)
    return ''
