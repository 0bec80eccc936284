"""YAML of layout files as plain text, lists and mappings, with limits.

Only the YAML that layouts need is read: no anchors, which can grow without bound, no tags, which
can name Python objects, and no repeated keys, since YAML readers silently keep the last one.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from anyfolder.errors import InputError, rejecting
from anyfolder.text import read_text

LOADER = getattr(yaml, 'CBaseLoader', yaml.BaseLoader)  # in C if PyYAML has it
MAX_DEPTH = 4  # levels of nested lists and mappings
QUOTES = "quote values that begin with *, { or #, as in images: '{split}/*.jpg'"


def read_layout_yaml(file: Path) -> list[Any]:
    """The documents of a file, which are separated by ``---``.

    Scalars are text, whatever they look like, so ``no`` and ``010`` stay names and codes. Only an
    empty scalar and an unquoted ``~`` are None.

    Raises:
        InputError: if the file is too large, is not YAML, or has anchors, tags, a key twice, or
            lists and mappings nested more than :data:`MAX_DEPTH` deep.
    """
    text = read_text(file, kind='YAML')
    with rejecting(f'{str(file)!r} is not YAML', f'correct it, and {QUOTES}', (yaml.YAMLError,)):
        events = yaml.parse(text, LOADER)
        return [  # `_read_node` takes the events of each document from the same iterator
            _read_node(next(events), events, file, 1)
            for event in events
            if isinstance(event, yaml.DocumentStartEvent)
        ]


def _read_node(event: yaml.Event, events: Iterator[yaml.Event], file: Path, depth: int) -> Any:
    """The text, list or mapping that begins with an event, or None; see :func:`read_layout_yaml`.

    Args:
        event: the first event of the value.
        events: the events that follow; those of the value are taken from it.
        file: the layout file, for messages.
        depth: the level of the value; 1 for the outermost.
    """
    line = _line_of(event, file)
    if isinstance(event, yaml.AliasEvent) or event.anchor:
        raise InputError(
            f'{line} has an anchor (& or *); write out what it stands for, or {QUOTES}.'
        )
    if event.tag:
        raise InputError(f'{line} has the tag {event.tag!r}; remove it.')
    if isinstance(event, yaml.ScalarEvent):
        return None if not event.style and event.value in ('', '~') else event.value
    if depth > MAX_DEPTH:
        raise InputError(
            f'{line} is a list or mapping nested more than {MAX_DEPTH} deep; flatten it.'
        )
    if isinstance(event, yaml.SequenceStartEvent):
        items = []
        while not isinstance(event := next(events), yaml.SequenceEndEvent):
            items.append(_read_node(event, events, file, depth + 1))
        return items
    mapping: dict[str, Any] = {}
    while not isinstance(event := next(events), yaml.MappingEndEvent):
        line = _line_of(event, file)
        key = _read_node(event, events, file, depth + 1)
        if not isinstance(key, str):
            raise InputError(f'{line} has a key that is not text; correct it, and {QUOTES}.')
        if key in mapping:
            raise InputError(f'{line} has the key {key!r} twice; keep one of them.')
        mapping[key] = _read_node(next(events), events, file, depth + 1)
    return mapping


def _line_of(event: yaml.Event, file: Path) -> str:
    """The line where an event begins, for messages."""
    return f'line {event.start_mark.line + 1} of {str(file)!r}'
