"""Suggest the known names that are most similar to a wrong one."""

from collections.abc import Callable, Iterable
from difflib import get_close_matches

from vit_plugin.errors import ConfigError

MAX_LISTED_NAMES = 24  # most names in a sentence


def closest(
    name: object,
    known: Iterable[str],
    most: int = 1,
    cutoff: float = 0.6,
    key: Callable[[str], str] = str.lower,
) -> list[str]:
    """The known names that are most similar to a wrong one, best first.

    Args:
        name: the wrong name.
        known: the valid names.
        most: number of names. Names with the same ``key`` count as one.
        cutoff: least similarity, from 0 to 1.
        key: the part of a name that is compared.
    """
    keyed = [(key(one), one) for one in known]
    compared = dict.fromkeys(part for part, _ in keyed)
    near = get_close_matches(key(str(name)), list(compared), most, cutoff)
    return [one for match in near for part, one in keyed if part == match]


def suggestion(
    name: object,
    known: Iterable[str],
    takes: str = 'there are',
    cutoff: float = 0.6,
    key: Callable[[str], str] = str.lower,
    otherwise: str = '',
) -> str:
    """The end of a sentence about a wrong name: the nearest name, or all names.

    Args:
        name, known, cutoff, key: see :func:`closest`.
        takes: the words before a list of all names.
        otherwise: replaces a list that is too long.
    """
    known = list(known)
    if near := closest(name, known, cutoff=cutoff, key=key):
        return f'did you mean {" or ".join(near)}?'
    if len(known) <= MAX_LISTED_NAMES:
        return f'{takes} {", ".join(known) or "none"}.'
    return otherwise or f'the nearest are {", ".join(closest(name, known, 3, 0.0, key))}.'


def guess(name: str, known: Iterable[str]) -> str:
    """The end of a sentence with the nearest name, or '' if none is near."""
    near = closest(name, known)
    return f'; did you mean {near[0]}?' if near else ''


def alternatives(names: Iterable[str]) -> str:
    """Names in a sentence: ``a, b or c``."""
    *most, last = names
    return f'{", ".join(most)} or {last}' if most else last


def check_choice(flag: str, given: str | None, choices: Iterable[str]) -> None:
    """Raise a ``ConfigError`` if the value of a flag is not one of its choices."""
    choices = list(choices)
    if given and given not in choices:
        end = guess(given, choices) or '.'
        raise ConfigError(f'{flag} {given!r} is not one of {", ".join(choices)}{end}')


def unscoped(name: str) -> str:
    """A registered name without the scope of its registry, as a ``key``."""
    return name.rpartition('.')[2].lower()
