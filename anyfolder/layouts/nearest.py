"""The known word that is most similar to a wrong one."""

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of a sentence with the nearest known word; empty if there is none."""
    nearest = get_close_matches(word.lower(), list(known), n=1, cutoff=0)
    return f'; did you mean {nearest[0]!r}?' if nearest else '.'
