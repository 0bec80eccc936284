"""Errors for wrong input and for missing packages, each with a message of one sentence."""

import copy
import errno
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class InputError(ValueError):
    """Wrong input. The message is one sentence that names what is wrong and the remedy.

    The commands print only this sentence.

    Attributes:
        option: the name of the wrong option; empty if the input itself is at fault.
    """

    def __init__(self, message: object = '', option: str = '') -> None:
        super().__init__(message)
        self.option = option


class UnclearError(InputError):
    """An ambiguous folder: nothing is guessed.

    Attributes:
        answer: partial content of an ``anyfolder.yaml`` that would resolve the ambiguity. Files
            are given as :class:`~pathlib.Path` and become patterns later, see
            :mod:`anyfolder.layouts.answers`.
    """

    def __init__(self, message: object = '', **answer: object) -> None:
        super().__init__(message)
        self.answer = answer


class MissingExtraError(ImportError):
    """An optional package is not installed.

    ``vit_plugin`` also raises it for packages that do not work with each other or with the system.
    """


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Prefix the message of an ``InputError`` with a path, unless it already names the path.

    Code that is called within the block need not know the path. The class and the attributes of the
    error are kept.
    """
    try:
        yield
    except InputError as error:
        if _is_named(path, str(error)):
            raise
        named = copy.copy(error)
        named.args = (f'{path!r}: {error}',)
        raise named from error


def _is_named(path: str, message: str) -> bool:
    """Whether a message has a path, and not only as a part of a word."""
    start = r'(?<!\w)' if path[:1].isalnum() else ''
    end = r'(?!\w)' if path[-1:].isalnum() else ''
    return re.search(start + re.escape(path) + end, message) is not None


def first_line(error: BaseException) -> str:
    """The message of an error, shortened to one line."""
    text = f'{error}'.strip() if not isinstance(error, KeyError) else f'no {error}'
    line = ' '.join(
        next((line for line in text.splitlines() if line.strip()), 'without a message').split()
    )
    return (line if len(line) <= 300 else f'{line[:300]} ...').rstrip('.')


def named_line(error: BaseException) -> str:
    """The name of an error's class, then :func:`first_line`, for errors that may have no text."""
    return f'{type(error).__name__}: {first_line(error)}'


def is_out_of_memory(error: BaseException) -> bool:
    """True for out-of-memory errors of Python, the system, and torch on a GPU or CPU."""
    return (
        isinstance(error, MemoryError)
        or (isinstance(error, OSError) and error.errno == errno.ENOMEM)
        # Torch is not imported just to compare a class.
        or type(error).__name__ == 'OutOfMemoryError'
        or 'DefaultCPUAllocator: ' in str(error)  # a RuntimeError
    )


@contextmanager
def rejecting(
    what: str,
    remedy: str = '',
    kinds: tuple[type[Exception], ...] = (Exception,),
    cause: Callable[[BaseException], str] = first_line,
) -> Iterator[None]:
    """Turn another package's errors into one sentence that contains their cause.

    Args:
        what: the beginning of the sentence, which states what is wrong.
        remedy: the end of the sentence.
        kinds: the error classes. Default: all.
        cause: returns the text for an error.

    Raises:
        InputError: in place of such an error. This package's own errors pass, and so do
            out-of-memory errors, which have their own remedy.
    """
    try:
        yield
    except kinds as error:
        if isinstance(error, (InputError, MissingExtraError)) or is_out_of_memory(error):
            raise
        end = f'; {remedy}.' if remedy else '.'
        raise InputError(f'{what} ({cause(error)}){end}') from error


# Optional modules -> packages to pip install. They are plain packages, not extras of anyfolder.
EXTRAS = {
    'pillow_heif': 'pillow-heif',
    'h5py': 'h5py',
    'tifffile': 'tifffile imagecodecs',
}


@contextmanager
def needed_by(feature: str) -> Iterator[None]:
    """Explain a failed import of an optional package inside the block.

    Args:
        feature: the feature that needs the import, the subject of the message.

    Raises:
        MissingExtraError: if a module of :data:`EXTRAS` is missing, with the command that installs
            it.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        module = (error.name or '').partition('.')[0]
        if module not in EXTRAS:
            raise
        raise MissingExtraError(
            f'{feature} needs {module}, which is not installed; pip install {EXTRAS[module]}.',
            name=module,
        ) from error
