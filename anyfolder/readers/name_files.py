"""Find the files that name classes: a YAML file such as YOLO's, ``classes.txt``, ``*.names``."""

import re
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from anyfolder.errors import InputError
from anyfolder.limits import check_limit
from anyfolder.text import LONGEST_IN_LIST, read_lines

from .class_names import check_same_names
from .image_tree import Tree
from .tables import WHOLE_NUMBER

# Patterns of files with a name on each line. If a YAML or JSON file has names, only the first two
# are compared with it.
NAME_FILES = ('classes.txt', '*.names', '_darknet.labels', 'labels.txt', 'names.txt', 'wnids.txt')
# The forms of a line with a class number: ``0: cat``, ``0 cat``, ``cat: 0``.
NUMBERED_LINES = (
    r'(?P<number>\d{1,9})(?:\s*[:,;]\s*|\s+)(?P<name>\S.*)',
    r'(?P<name>.*\S)\s*[:,;=]\s*(?P<number>\d{1,9})',
)
# The YAML file with the class names, and its content.
Settings = tuple[Path, dict[str, Any]]
Names = tuple[Path, list[str]]  # the file with the class names, and the names


def find_settings(tree: Tree) -> Settings | None:
    """The YAML file with the class names, and its content as text, or None.

    Raises:
        InputError: if a file is not YAML, or if several have different names.
    """
    settings: list[Settings] = []
    for file in tree.others:
        if file.suffix.lower() not in ('.yaml', '.yml'):
            continue
        content = tree.contents.yaml(file)
        if isinstance(content, dict) and 'names' in content:
            settings.append((file, content))
    check_same_names([(file, _by_number(content['names'])) for file, content in settings])
    return settings[0] if settings else None


def _by_number(names: Any) -> Any:
    """The names by class number, whether they are a list or `number: name`; others unchanged."""
    if isinstance(names, list):
        return dict(enumerate(names))
    if isinstance(names, dict) and all(map(WHOLE_NUMBER.fullmatch, names)):
        return {int(number): name for number, name in names.items()}
    return names


def find_names(tree: Tree, settings: Settings | None) -> Names | None:
    """The file with the class names, and the names, which are empty for unnamed numbers.

    None without such a file.

    Args:
        tree: the files of the folder.
        settings: the result of :func:`find_settings`.

    Raises:
        InputError: if the names in a YAML file are not a list, or if two files differ.
    """
    named: list[Names] = []
    if settings:
        names = settings[1]['names']
        if isinstance(names, dict) and names and all(map(str.isdecimal, names)):
            check_limit(settings[0], 'classes', 1 + max(map(float, names)), ' by their numbers')
            numbered = {int(key): name for key, name in names.items()}
            names = [numbered.get(i, '') for i in range(1 + max(numbered))]
        if not isinstance(names, list):
            raise InputError(
                f'names of {str(settings[0])!r} must be a list of the classes, or number: name.'
            )
        named = [(settings[0], [str(name).strip() for name in names])]
    elif in_json := next(_names_in_json(tree), None):
        named = [in_json]
    for pattern in NAME_FILES[:2] if named else NAME_FILES:
        files = (file for file in tree.others if fnmatch(file.name, pattern))
        with_lists = [
            *named,
            *((file, names_by_number(read_lines(file, LONGEST_IN_LIST))) for file in files),
        ]
        check_same_names(with_lists)
        if len(with_lists) > len(named):
            return with_lists[0]
    return named[0] if named else None


def _names_in_json(tree: Tree) -> Iterator[Names]:
    """The files with names by class number, such as Hugging Face's ``id2label.json``."""
    for file in tree.others:
        content = tree.contents.json(file) if file.suffix.lower() == '.json' else None
        if isinstance(content, dict) and content and all(map(WHOLE_NUMBER.fullmatch, content)):
            names = {int(key): name for key, name in content.items() if isinstance(name, str)}
            # All values are text, the names are unique, and at most one number is missing, as 0.
            if len(names) == len(content) and len({*names.values()}) == len(names) > max(names) - 1:
                yield file, [names.get(i, '').strip() for i in range(1 + max(names))]


def names_by_number(lines: list[str]) -> list[str]:
    """The names in the order of their numbers; the lines if these are not numbered from 0 on."""
    order = range(len(lines))
    for form in NUMBERED_LINES:
        names = {
            int(match['number']): match['name']
            for line in lines
            if (match := re.fullmatch(form, line))
        }
        if {*names} == {*order}:
            return [names[i] for i in order]
    return lines
