"""Rewrite paths in configs, so that the folder of a run can be moved."""

import os
import re
from collections.abc import Mapping
from typing import Any

HERE = '{{ fileDirname }}'  # MMEngine replaces it by the folder of the config file


def make_paths_relative(text: str, old_folder: str, folder: str) -> str:
    """Rewrite quoted paths below a folder as relative to the folder of the config.

    Then they move with the config. If the new folder's name has characters that a config would
    escape or quote, they become absolute paths instead.

    Args:
        text: the config, as Python text.
        old_folder: the folder with which its paths begin.
        folder: the folder that the config will be in.
    """
    # `repr` escapes the same characters as the text of a config.
    old_path = repr(os.path.abspath(old_folder))[1:-1]
    new_path = repr(os.path.abspath(folder))[1:-1]
    is_plain = new_path == os.path.abspath(folder) and not re.search(r'[\'"]', new_path)
    prefix = HERE if is_plain else new_path
    return re.sub(rf'(?<=[\'"]){re.escape(old_path)}(?=[/\'"])', lambda _: prefix, text)


def relocate_paths(value: Any, old_folder: str, folder: str) -> Any:
    """Replace paths in a run's former folder by those in its present one, in nested settings.

    Paths that do not exist in the present folder are kept.
    """
    if isinstance(value, str):
        below = value.removeprefix(old_folder.rstrip(os.sep) + os.sep)
        path = os.path.join(folder, below)
        return path if below != value and os.path.exists(path) else value
    if isinstance(value, Mapping):
        return {name: relocate_paths(item, old_folder, folder) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(relocate_paths(item, old_folder, folder) for item in value)
    return value
