"""Counts and option names in messages, in the words of the calling program.

The remedy of an error is often an option: ``task='detection'`` in Python, ``--task detection`` in a
terminal. The readers use the name in :func:`anyfolder.read`, and the calling program translates it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

Words = Callable[[str, Any], str]  # returns the text for the name and the value of an option


def counted(number: int, thing: str) -> str:
    """A number with its noun, in the plural if needed: ``1 image``, ``3 classes``."""
    if number == 1:
        return f'1 {thing}'
    return f'{number} {thing}{"es" if thing.endswith("s") else "s"}'


# Names that are no option of `anyfolder.read`, but can be one of a calling program; here they
# become a clause with the value.
CLAUSES = {'window': 'best seen with black and white at {}'}


def as_argument(name: str, value: Any = None) -> str:
    """An option as an argument in Python: ``task='detection'``, or without a value ``task``."""
    if name in CLAUSES:
        return CLAUSES[name].format(value)
    return name if value is None else f'{name}={value!r}'


def as_flag(name: str, value: Any = None) -> str:
    """An option on a command line: ``--task detection``, ``--task``, ``--skip-invalid``."""
    if name in CLAUSES:
        return CLAUSES[name].format(value)
    flag = f'--{name.replace("_", "-")}'
    return flag if value is None or value is True else f'{flag} {value}'


_words: ContextVar[Words] = ContextVar('words', default=as_argument)


def option(name: str, value: Any = None) -> str:
    """An option, maybe with a value, in the words of the calling program.

    Args:
        name: a parameter of :func:`anyfolder.read`, or a key of :data:`CLAUSES`.
        value: its value, or None to name only the option.
    """
    return _words.get()(name, value)


@contextmanager
def using_words(words: Words) -> Iterator[None]:
    """Within this context, name options in messages by ``words``."""
    token = _words.set(words)
    try:
        yield
    finally:
        _words.reset(token)
