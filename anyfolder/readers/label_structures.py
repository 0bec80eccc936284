"""Values in a label column that are a structure (JSON, XML, Python lists), not a name."""

import json
import re
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from anyfolder.bounded import json_in
from anyfolder.errors import InputError, UnclearError
from anyfolder.wording import option

from .class_names import class_name
from .tables import TABLE_SUFFIXES

BRACKETS = ('[', '{', '(')
SEQUENCE = re.compile(r"""[({]\s*((['"]).*\2)\s*,?\s*[)}]""", re.DOTALL)  # a Python tuple or set
CUT_OFF = re.compile(r'[\[{]\s*[\[{"]')  # start of JSON, which may be truncated
XML = re.compile(r'<(\w+)[^>]*(/>|>.*</\1>)', re.DOTALL)
PAIRS = re.compile(r'(\d+ \d+ )+\d+ \d+')  # starts and lengths, as in Kaggle's masks
SHOWN_LETTERS = 80  # letters of a value quoted in a message
# Multi-hot vectors in any notation: [0, 1, 0], 0 1 0, 0;1;0.
VECTOR = re.compile(r'[\[(]?\s*[01](\.0*)?([\s,;|]+[01](\.0*)?)+\s*[\])]?')
NAME_KEYS = ('choices', 'label', 'labels', 'name', 'class', 'category')
REGION_KEYS = {'x', 'y', 'width', 'height', 'bbox', 'box', 'points', 'segmentation', 'rle'}


class NoNamesError(ValueError):
    """A structure without names. The arguments are its kind and the remedy."""


# {task} is the option that selects detection, in the caller's words.
OTHER = NoNamesError('JSON', 'write the class names instead')
ELEMENTS = NoNamesError('XML', 'write the class names instead')
REGIONS = NoNamesError(
    'JSON of regions',
    'export these as COCO or YOLO and give {task}, or write one name for each image',
)
RUN_LENGTHS = NoNamesError(
    'run lengths of masks', 'draw these as masks in PNG files, for {segmentation}'
)
VECTORS = NoNamesError(
    'vectors of 0 and 1',
    'write the class names instead, with | between several, or a column of 0 and '
    '1 for each class with its name as the title',
)


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
    vectors = {len(re.findall(r'[01](?:\.0*)?', one)) for one in values if VECTOR.fullmatch(one)}
    all_vectors = len(vectors) == 1 and all(map(VECTOR.fullmatch, values))
    are_run_lengths = bool(values) and all(map(PAIRS.fullmatch, values))
    found: dict[str, list[str]] = {}
    for value in values:
        try:
            if all_vectors:
                raise VECTORS
            if are_run_lengths:
                raise RUN_LENGTHS
            if XML.fullmatch(value):
                raise ELEMENTS
            if value.startswith(BRACKETS) and (content := _parsed(value, file)) is not None:
                found[value] = [class_name(name) for name in _names(content)]
        except NoNamesError as error:
            what, remedy = error.args
            key = _key_of_names(values, file) if error is OTHER else ''
            remedy = remedy.format(
                task=option('task', 'detection'), segmentation=option('task', 'segmentation')
            )
            shown = value if len(value) <= SHOWN_LETTERS else f'{value[:SHOWN_LETTERS]}...'
            sentence = (
                f'the column {column!r} of {str(file)!r} has {what} such as {shown}, but '
                f'labels must be names; {remedy}.'
            )
            if key and file.suffix.lower() in TABLE_SUFFIXES:
                columns = {'class': f'{column}.{key}'}
                raise UnclearError(
                    sentence, format='table', labels=[file], columns=columns
                ) from None
            raise InputError(sentence) from error
    return found.get


def _parsed(value: str, file: Path) -> Any:
    """The content of JSON, or of Python lists, sets and dicts of text; None for other text.

    Raises:
        NoNamesError: for damaged JSON.
    """
    sequence = SEQUENCE.fullmatch(value)
    texts = (value, f'[{sequence[1]}]' if sequence else value)
    for text in dict.fromkeys((*texts, *(text.replace("'", '"') for text in texts))):
        with suppress(InputError, json.JSONDecodeError):
            return json_in(text, file)
    if CUT_OFF.match(value):
        raise OTHER
    return None


def text_of_key(text: str, key: str) -> str:
    """The value of a key in JSON or in a Python dict, as text; empty without it."""
    with suppress(NoNamesError):
        content = _parsed(text, Path())
        value = content.get(key) if isinstance(content, Mapping) else None
        return '' if value is None else str(value)
    return ''


def _key_of_names(values: Collection[str], file: Path) -> str:
    """The first key for which all values are dicts with text; empty without one."""
    with suppress(NoNamesError):  # a damaged file
        dicts = [_parsed(value, file) for value in values]
        if all(isinstance(one, Mapping) for one in dicts):
            found = (key for key in dicts[0] if all(isinstance(one.get(key), str) for one in dicts))
            return str(next(found, ''))
    return ''


def _names(content: Any) -> list[str]:
    """The names in a structure.

    Raises:
        NoNamesError: if it has none.
    """
    if isinstance(content, (str, int, float)) and not isinstance(content, bool):
        return [str(content)]
    if isinstance(content, list):
        return [name for one in content for name in _names(one)]
    if not isinstance(content, Mapping):
        raise OTHER
    geometry = REGION_KEYS & {str(key).casefold() for key in content}
    flags = all(isinstance(flag, (int, float)) and flag in (0, 1) for flag in content.values())
    if content and flags and len(geometry) < 2:
        return [str(name) for name, flag in content.items() if flag]
    if geometry:
        raise REGIONS
    for key in NAME_KEYS:
        if key in content:
            return [] if content[key] is None else _names(content[key])
    raise OTHER
