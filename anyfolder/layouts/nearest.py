"""Propose the known word that is most similar to a wrong one, for error messages."""

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of a sentence: ``; did you mean 'table'?``, or a period if there is no known word."""
    nearest = get_close_matches(word.lower(), list(known), n=1, cutoff=0)
    return f'; did you mean {nearest[0]!r}?' if nearest else '.'
