"""Errors for wrong input and for missing packages, each in one sentence."""

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class InputError(ValueError):
    """Wrong input. The message is one sentence that names the field and the remedy.

    The commands print only this sentence.

    Attributes:
        option: the option that is wrong, in place of the folder that is read.
    """

    def __init__(self, message: object = '', option: str = '') -> None:
        super().__init__(message)
        self.option = option


class UnclearError(InputError):
    """A folder that leaves open what is meant, so that nothing is guessed.

    Attributes:
        answer: keys of a layout file that would have told it, as far as they are known where the
            question arises, see :mod:`anyfolder.layouts.answers`. Files are paths.
    """

    def __init__(self, message: object = '', **answer: object) -> None:
        super().__init__(message)
        self.answer = answer


class MissingExtraError(ImportError):
    """A module of an extra is not installed, or does not work with the other installed packages."""


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Prefix a ``InputError`` message with a path, unless it has it.

    Code that only sees tensors does not know the path.
    """
    try:
        yield
    except InputError as error:
        if path in str(error):
            raise
        raise InputError(f'{path!r}: {error}') from error


def first_line(error: BaseException) -> str:
    """The message of an error, shortened to one line."""
    text = f'{error}'.strip() if not isinstance(error, KeyError) else f'no {error}'
    line = ' '.join(
        next((line for line in text.splitlines() if line.strip()), 'without a message').split()
    )
    return (line if len(line) <= 300 else f'{line[:300]} ...').rstrip('.')


def named_line(error: BaseException) -> str:
    """The first line after the name of the error's class, of which it may say nothing."""
    return f'{type(error).__name__}: {first_line(error)}'


def is_out_of_memory(error: BaseException) -> bool:
    """True for the errors of Python, of the system, and of torch on a GPU and on a CPU."""
    return (
        isinstance(error, MemoryError)
        or (isinstance(error, OSError) and error.errno == errno.ENOMEM)
        or type(error).__name__ == 'OutOfMemoryError'  # torch is not imported for its name
        or 'DefaultCPUAllocator: ' in str(error)  # a RuntimeError
    )


@contextmanager
def rejecting(
    what: str,
    remedy: str = '',
    kinds: tuple[type[Exception], ...] = (Exception,),
    cause: Callable[[BaseException], str] = first_line,
) -> Iterator[None]:
    """Turn another package's errors of these kinds into one sentence, with their cause in it.

    Args:
        what: what is wrong, the beginning of the sentence.
        remedy: the end of it.
        kinds: the errors. Default: all.
        cause: what is said of the error.

    Raises:
        InputError: in place of such an error. This package's own errors pass, and so does one over
            too little memory, which has its own remedy.
    """
    try:
        yield
    except kinds as error:
        if isinstance(error, (InputError, MissingExtraError)) or is_out_of_memory(error):
            raise
        end = f'; {remedy}.' if remedy else '.'
        raise InputError(f'{what} ({cause(error)}){end}') from error


# Optional modules -> the packages that have them.
EXTRAS = {
    'pillow_heif': 'pillow-heif',
    'h5py': 'h5py',
    'tifffile': 'tifffile imagecodecs',
}


@contextmanager
def needed_by(feature: str) -> Iterator[None]:
    """Explain a failed import of an optional package inside the block.

    Args:
        feature: what needs the import. It is the subject of the message.

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
