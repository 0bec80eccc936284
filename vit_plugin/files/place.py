"""Relative paths in configs, which can be moved with the folder of their run."""

import os
import re
from collections.abc import Mapping
from typing import Any

HERE = '{{ fileDirname }}'  # MMEngine replaces it by the folder of the config file


def placed(text: str, before: str, folder: str) -> str:
    """Rewrite paths in one folder as relative to the folder of the config.

    Then they move with it, unless the folder's name has characters that cannot be quoted.

    Args:
        text: the config.
        before: the folder in its paths.
        folder: the folder for which it is written.
    """
    named, path = (repr(os.path.abspath(one))[1:-1] for one in (before, folder))
    movable = path == os.path.abspath(folder) and not re.search(r'[\'"]', path)
    place = HERE if movable else path
    return re.sub(rf'(?<=[\'"]){re.escape(named)}(?=[/\'"])', lambda _: place, text)


def relocated(value: Any, before: str, folder: str) -> Any:
    """Settings with paths in a run's former folder replaced by those in its present one."""
    if isinstance(value, str):
        below = value.removeprefix(before.rstrip(os.sep) + os.sep)
        path = os.path.join(folder, below)
        return path if below != value and os.path.exists(path) else value
    if isinstance(value, Mapping):
        return {name: relocated(item, before, folder) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(relocated(item, before, folder) for item in value)
    return value
