"""Values in untrusted annotations: a name can be null, a number text, a flag ``'yes'``."""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

Json = Mapping[str, Any]  # an object of JSON
# Keys that mark an object as neither trained on nor counted, and keys whose values have such keys.
IGNORED = ('iscrowd', 'is_crowd', 'crowd', 'ignore', 'difficult')
NESTED = {'attributes', 'flags', 'extra', 'properties', 'other_data'}
MAX_CACHED_KEYS = 1000  # keys in lower case


def text_of(value: Any) -> str:
    """A name in JSON, empty for null."""
    return '' if value is None else str(value).strip()


def number_of(value: Any) -> float:
    """Parse a number, or return NaN."""
    if type(value) in (float, int):
        return float(value)
    with suppress(TypeError, ValueError, OverflowError):
        return math.nan if isinstance(value, bool) else float(value)
    return math.nan


def key_of(number: Any) -> str:
    """A comparable id: some files have 1 in one place, and '1' or 1.0 in another."""
    return str(number).strip().removesuffix('.0')


def is_yes(value: Any) -> bool:
    """True for 1, true and yes, as numbers or text."""
    return str(value).strip().casefold() in ('1', '1.0', 'true', 'yes')


def properties_of(item: Mapping[Any, Any]) -> list[tuple[str, Any]]:
    """The keys, in lower case, and values of an object and of :data:`NESTED` objects in it."""
    properties = []
    for key, value in item.items():
        name = _lower_case(key)
        if not isinstance(value, dict):
            properties.append((name, value))
        elif name in NESTED:
            properties += properties_of(value)
    return properties


@lru_cache(maxsize=MAX_CACHED_KEYS)
def _lower_case(key: Any) -> str:
    return str(key).casefold()


def is_ignored(item: Mapping[Any, Any]) -> bool:
    """True if an object is marked as crowd, ignored or difficult."""
    return are_ignored(properties_of(item))


def are_ignored(properties: Sequence[tuple[str, Any]]) -> bool:
    """True if the properties of an object mark it as crowd, ignored or difficult."""
    return any(value and key in IGNORED and is_yes(value) for key, value in properties)


def first_of(item: Json, keys: Sequence[str]) -> Any:
    """The value of the first of these keys that exists.

    Raises:
        KeyError: if none exists.
    """
    return item[next((key for key in keys if key in item), keys[0])]


def stated_size(width: Any, height: Any) -> tuple[float, float]:
    """The size that an annotation states, as numbers or text; (0, 0) if a side is invalid."""
    sides = number_of(width), number_of(height)
    return sides if all(side and math.isfinite(side) for side in sides) else (0, 0)
