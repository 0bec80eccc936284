"""Read untrusted JSON, YAML and XML as plain data, within the limits of :mod:`anyfolder.limits`.

Sizes are checked before a file is read, and YAML aliases are counted before they are followed.
Nothing in a file becomes a Python object, an entity or a path.
"""

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import yaml

from anyfolder.errors import InputError, first_line, named_line, rejecting

from .limits import check_limit, exceeded, limit
from .text import read_text

# Loaders for plain data, in C if PyYAML was compiled with libyaml, as its wheels are.
_TEXT_LOADER = getattr(yaml, 'CBaseLoader', yaml.BaseLoader)
_VALUE_LOADER = getattr(yaml, 'CSafeLoader', yaml.SafeLoader)
LETTERS_PER_VALUE = 64  # characters of YAML text that count as one value, since aliases repeat them
MAX_SEXAGESIMAL = 1000  # digits between the colons of a number of YAML, such as 1:30:00
HEAD_BYTES = 1024  # first bytes of XML, which declare its encoding
# The errors of PyYAML: its own, and those of values that do not fit their type, such as a date in
# month 13, ``!!bool maybe`` or ``!!timestamp now``.
YAML_ERRORS = (yaml.YAMLError, ValueError, LookupError, ArithmeticError, AttributeError, TypeError)
_DECLARED = re.compile(rb'\s*<\?xml[^>]*encoding=["\']([\w.-]+)')


def read_json(file: str | Path) -> Any:
    """The content of a JSON file.

    Raises:
        InputError: if it is not JSON, or exceeds a limit.
        OSError: if the file cannot be read.
    """
    return json_in(read_text(file, kind='JSON'), file)


def json_in(text: str, source: object) -> Any:
    """The content of JSON.

    Args:
        text: the JSON.
        source: the file or place that has it, for messages.

    Raises:
        InputError: see :func:`read_json`.
    """
    containers = text.count('[') + text.count('{')
    check_limit(source, 'lists and objects of JSON', containers)
    try:
        content = json.loads(text)
    except RecursionError as error:
        raise exceeded(source, 'levels of JSON') from error
    except ValueError as error:  # also raised for a number with more digits than Python converts
        raise InputError(
            f'{str(source)!r} is not JSON ({first_line(error)}); correct or remove it.'
        ) from error
    if containers > limit('levels of JSON'):
        check_limit(source, 'levels of JSON', _nesting_depth(content))
    return content


def _nesting_depth(content: Any) -> int:
    """The nesting depth of lists and objects, up to one level more than the limit."""
    level, depth = [[content]], -1  # the list around the content does not count
    while level and depth <= limit('levels of JSON'):
        depth += 1
        level = [
            child
            for parent in level
            for child in (parent.values() if type(parent) is dict else parent)
            if type(child) in (dict, list)
        ]
    return depth


def read_yaml(file: str | Path, as_text: bool = False) -> Any:
    """The content of a YAML file: lists, dicts and scalars, never objects of Python.

    Args:
        file: the file.
        as_text: whether all scalars stay text, such as a class called ``no``.

    Raises:
        InputError: if it is not YAML, names an object of Python, or exceeds a limit.
        OSError: if the file cannot be read.
    """
    return yaml_in(read_text(file, kind='YAML'), file, as_text)


def yaml_in(text: str, source: object, as_text: bool = False) -> Any:
    """The content of YAML.

    Args:
        text: the YAML.
        source: the file or place that has it, for messages.
        as_text: see :func:`read_yaml`.

    Raises:
        InputError: see :func:`read_yaml`.
    """
    try:
        _check_yaml(text, source)
        return yaml.load(text, _TEXT_LOADER if as_text else _VALUE_LOADER)
    except InputError:
        raise
    except YAML_ERRORS as error:
        raise InputError(
            f'{str(source)!r} is not YAML of plain values ({first_line(error)}); correct it.'
        ) from error


def _check_yaml(text: str, source: object) -> None:
    """Check YAML against the limits; each alias counts as much as the value that it repeats."""
    check_limit(source, 'bytes of YAML', len(text))
    max_values, max_levels = limit('values of YAML'), limit('levels of YAML')
    # The number of values of each anchored node. While a node is open, its number is above the
    # limit, so that an alias to it from within is an error.
    sizes: dict[str | None, int] = {}
    opened: list[tuple[str | None, int]] = []  # anchors of open nodes, and the total before each
    total = 0
    for event in yaml.parse(text, _TEXT_LOADER):
        if isinstance(event, yaml.ScalarEvent):
            if _is_long_number(event.value):
                raise InputError(
                    f'{str(source)!r} has a number of more than {MAX_SEXAGESIMAL} parts with '
                    'colons; correct it.'
                )
            sizes[event.anchor] = 1 + len(event.value) // LETTERS_PER_VALUE
            total += sizes[event.anchor]
        elif isinstance(event, yaml.AliasEvent):
            total += sizes.get(event.anchor, 0)
        elif isinstance(event, yaml.CollectionStartEvent):
            opened.append((event.anchor, total))
            sizes[event.anchor] = max_values + 1
            total += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = opened.pop()
            sizes[anchor] = total - before
        if total > max_values:
            raise exceeded(source, 'values of YAML', ', including those that its aliases stand for')
        if len(opened) > max_levels:
            raise exceeded(source, 'levels of YAML')


def _is_long_number(text: str) -> bool:
    """True for a number to the base 60 with so many digits that YAML would compute for hours."""
    return text.count(':') > MAX_SEXAGESIMAL and not any(map(str.isalpha, text))


def read_xml(file: Path) -> ElementTree.Element:
    """The root of an XML file that defines no entities.

    Raises:
        InputError: if it is not XML, defines entities, or exceeds a limit.
        OSError: if the file cannot be read.
    """
    with open(file, 'rb') as stream:
        declared = _DECLARED.match(stream.read(HEAD_BYTES))
    encoding = declared[1].decode().lower() if declared else ''
    if encoding.startswith('gb'):
        encoding = 'gb18030'  # a superset of gb2312 and gbk
    elif encoding.startswith('utf'):
        encoding = ''  # .NET declares UTF-16 for strings that it saves in UTF-8
    # The parser itself supports no Chinese or Japanese encoding.
    text = read_text(file, encoding, 'XML').strip()
    if '<!ENTITY' in text:
        raise InputError(
            f'{str(file)!r} defines entities, which annotations do not need; remove its DTD.'
        )
    parser = ElementTree.XMLParser(target=_BoundedTree(file))
    with rejecting(
        f'{str(file)!r} is not XML', 'correct it', (ElementTree.ParseError,), named_line
    ):
        parser.feed(text)
        root: ElementTree.Element = parser.close()
    return root


class _BoundedTree(ElementTree.TreeBuilder):
    """Builds the tree of an XML file within its limits."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.file, self.elements, self.levels = file, 0, 0
        self.max_elements, self.max_levels = limit('elements of XML'), limit('levels of XML')

    def start(self, tag: Any, attrs: Any, /) -> ElementTree.Element:
        """Count an element that begins."""
        self.elements += 1
        self.levels += 1
        if self.elements > self.max_elements:
            raise exceeded(self.file, 'elements of XML')
        if self.levels > self.max_levels:
            raise exceeded(self.file, 'levels of XML')
        return super().start(tag, attrs)

    def end(self, tag: str, /) -> ElementTree.Element:
        """Count an element that ends."""
        self.levels -= 1
        return super().end(tag)
