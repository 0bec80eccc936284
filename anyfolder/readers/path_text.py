"""Paths handled as text, since data sets have too many files to make a ``Path`` of each."""

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path


def folder_of(path: Path) -> str:
    """The folder of a file, as text."""
    return str(path).rpartition(os.sep)[0]


def stem_and_suffix(name: str) -> tuple[str, str]:
    """A file name without its suffix, and the suffix with its dot. ``splitext`` is slower."""
    stem, dot, suffix = name.rpartition('.')
    return (stem, dot + suffix) if stem else (name, '')


def parts_below(folder: Path) -> Callable[[str], tuple[str, ...]]:
    """A function that returns the parts of a path below a folder."""
    return cache(lambda path: Path(path).relative_to(folder).parts)
