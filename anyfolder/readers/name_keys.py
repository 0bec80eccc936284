"""Shorten file names by the words that all files in a folder share."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from functools import reduce
from operator import and_
from pathlib import Path

from .path_text import folder_of

TOKEN = re.compile(r'\d+|[^\W\d_]+')  # a number or a word


def keys_of(paths: Iterable[Path]) -> dict[Path, str]:
    """The key of each file: ``21`` of ``21_training.tif`` and of ``21_manual1.gif``.

    The names of an image and its maps often differ in words that all images, or all maps, share.
    The key has the other words, and is empty if there are none.
    """
    in_folder = defaultdict[str, list[Path]](list)
    for path in paths:
        in_folder[folder_of(path)].append(path)
    return {path: key for group in in_folder.values() for path, key in _keys(group).items()}


def first_word(key: str) -> str:
    """The first word of a key, or the number without zeros: 3 for ``00003 hair``."""
    return key.split(' ', maxsplit=1)[0].lstrip('0') or '0'


def _keys(paths: list[Path]) -> dict[Path, str]:
    """The keys of the files in a folder."""
    tokens_of = {path: TOKEN.findall(path.stem.casefold()) for path in paths}
    # The tokens that all names have, and how often.
    common = reduce(and_, map(Counter, tokens_of.values()))
    return {path: ' '.join(_remove_common(tokens, common)) for path, tokens in tokens_of.items()}


def _remove_common(tokens: list[str], common: Mapping[str, int]) -> list[str]:
    """The tokens without the common ones.

    The last of equal tokens are removed: ``1_manual1`` is image 1.
    """
    to_remove, kept = Counter(common), []
    for token in reversed(tokens):
        if to_remove[token]:
            to_remove[token] -= 1
        else:
            kept.append(token)
    return kept[::-1]
