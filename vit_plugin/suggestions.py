"""Suggest the known names that are most similar to a wrong one."""

from collections.abc import Callable, Iterable
from difflib import get_close_matches

from vit_plugin.errors import ConfigError

MAX_LISTED_NAMES = 24  # in a sentence


def closest(
    name: object,
    known: Iterable[str],
    max_names: int = 1,
    cutoff: float = 0.6,
    key: Callable[[str], str] = str.lower,
) -> list[str]:
    """The known names that are most similar to a wrong one, best first.

    Args:
        name: the wrong name.
        known: the valid names.
        max_names: the largest number of names. Names with the same ``key`` count as one.
        cutoff: the smallest similarity, from 0 to 1.
        key: the part of a name that is compared.
    """
    keyed = [(key(known_name), known_name) for known_name in known]
    keys = dict.fromkeys(name_key for name_key, _ in keyed)
    near = get_close_matches(key(str(name)), list(keys), max_names, cutoff)
    return [known_name for match in near for name_key, known_name in keyed if name_key == match]


def suggestion(
    name: object,
    known: Iterable[str],
    list_start: str = 'there are',
    cutoff: float = 0.6,
    key: Callable[[str], str] = str.lower,
    instead_of_list: str = '',
) -> str:
    """The end of a sentence about a wrong name: the nearest name, or all names.

    Args:
        name, known, cutoff, key: see :func:`closest`.
        list_start: the words before a list of all names.
        instead_of_list: replaces a list that is too long.
    """
    known = list(known)
    if near := closest(name, known, cutoff=cutoff, key=key):
        return f'did you mean {" or ".join(near)}?'
    if len(known) <= MAX_LISTED_NAMES:
        return f'{list_start} {", ".join(known) or "none"}.'
    return (
        instead_of_list
        or f'the nearest are {", ".join(closest(name, known, max_names=3, cutoff=0.0, key=key))}.'
    )


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of a sentence: '; did you mean x?' with the nearest name, or '' if none is near."""
    near = closest(name, known)
    return f'; did you mean {near[0]}?' if near else ''


def alternatives(names: Iterable[str]) -> str:
    """Names in a sentence: ``a, b or c``."""
    *others, last = names
    return f'{", ".join(others)} or {last}' if others else last


def check_choice(flag: str, given: str | None, choices: Iterable[str]) -> None:
    """Raise a ``ConfigError`` if the value of a flag is not one of its choices."""
    choices = list(choices)
    if given and given not in choices:
        end = did_you_mean(given, choices) or '.'
        raise ConfigError(f'{flag} {given!r} is not one of {", ".join(choices)}{end}')


def unscoped(name: str) -> str:
    """A registered name without the scope of its registry, as a ``key``."""
    return name.rpartition('.')[2].lower()
