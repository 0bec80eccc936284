"""Paths in a run's folder, in configs that move with it."""

import os
import re
from collections.abc import Mapping
from typing import Any

HERE = '{{ fileDirname }}'  # MMEngine replaces it by the folder of the config file


def placed(text: str, before: str, folder: str) -> str:
    """A config's text in which paths in one folder are those in that of the config.

    They move with it, unless its name has letters that cannot stand between quotes.

    Args:
        text: the config.
        before: the folder that it names.
        folder: the one for which it is written.
    """
    named, path = (repr(os.path.abspath(one))[1:-1] for one in (before, folder))
    movable = path == os.path.abspath(folder) and not re.search(r'[\'"]', path)
    place = HERE if movable else path
    return re.sub(rf'(?<=[\'"]){re.escape(named)}(?=[/\'"])', lambda _: place, text)


def relocated(value: Any, before: str, folder: str) -> Any:
    """Settings in which the files of a run's former folder are those that its present one has."""
    if isinstance(value, str):
        rest = value.removeprefix(before.rstrip(os.sep) + os.sep)
        path = os.path.join(folder, rest)
        return path if rest != value and os.path.exists(path) else value
    if isinstance(value, Mapping):
        return {name: relocated(item, before, folder) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(relocated(item, before, folder) for item in value)
    return value
