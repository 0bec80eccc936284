"""The known word that is most similar to a wrong one."""

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of a sentence with the nearest known word; empty if there is none."""
    found = get_close_matches(word.lower(), list(known), 1, 0)
    return f'; did you mean {found[0]!r}?' if found else '.'
