"""Shorten file names by the words that all files in a folder share."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from functools import reduce
from operator import and_
from pathlib import Path

from .identity import folder_of

TOKEN = re.compile(r'\d+|[^\W\d_]+')  # a number or a word


def keys_of(paths: Iterable[Path]) -> dict[Path, str]:
    """The key of each file: ``21`` of ``21_training.tif`` and of ``21_manual1.gif``.

    The names of an image and its maps often differ in words that all images, or all maps, share.
    The key is empty if there are no other words.
    """
    in_folder = defaultdict[str, list[Path]](list)
    for path in paths:
        in_folder[folder_of(path)].append(path)
    return {path: key for group in in_folder.values() for path, key in _keys(group).items()}


def first_word(key: str) -> str:
    """The first word of a key, or the number without zeros: 3 for ``00003 hair``."""
    return key.split(' ', maxsplit=1)[0].lstrip('0') or '0'


def _keys(paths: list[Path]) -> dict[Path, str]:
    tokens = {path: TOKEN.findall(path.stem.casefold()) for path in paths}
    common = reduce(and_, map(Counter, tokens.values()))
    return {path: ' '.join(_without(found, common)) for path, found in tokens.items()}


def _without(tokens: list[str], common: Mapping[str, int]) -> list[str]:
    """The tokens without these. The last of equal tokens are removed: ``1_manual1`` is image 1."""
    left, kept = Counter(common), []
    for token in reversed(tokens):
        if left[token]:
            left[token] -= 1
        else:
            kept.append(token)
    return kept[::-1]
