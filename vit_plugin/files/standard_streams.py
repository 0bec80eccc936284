"""Make standard output accept any text and survive a closed pipe, and end after Ctrl-C.

Without this, ``vit-plugin train | head`` would end the training with a ``BrokenPipeError``.
"""

import errno
import io
import os
import sys
from typing import Any

INTERRUPTED_STATUS = 130  # the exit status after Ctrl-C: 128 + SIGINT
BROKEN_PIPE_STATUS = 141  # the exit status after a broken pipe: 128 + SIGPIPE
# Errors of a pipe or a terminal without a reader. A full disk is not among them: output would be
# lost without an error.
NO_READER_ERRORS = (errno.EPIPE, errno.ECONNRESET, errno.EIO)


class TolerantOutput(io.FileIO):
    """A file descriptor for output that drops everything once its reader is gone.

    So a training survives the ``head`` or the terminal that shows it.

    Attributes:
        is_read: False once a write has failed because nobody reads the output.
    """

    is_read = True

    def write(self, content: bytes) -> int:  # type: ignore[override]
        try:
            return super().write(content)
        except OSError as error:
            if error.errno not in NO_READER_ERRORS:
                raise
            self.is_read = False
            _open_nowhere(self.fileno())  # C libraries write to the descriptor, too
            return len(content)


def set_up_streams() -> None:
    """Let standard output and standard error take any text, and survive their readers.

    Characters that the encoding lacks, and the bytes of a file name that is not in UTF-8, are
    printed as escapes. An output that the caller has closed is opened to /dev/null: otherwise the
    next file to be opened would get its number, and the output of C libraries.
    """
    for number, name in ((1, 'stdout'), (2, 'stderr')):
        stream = getattr(sys, name)
        if stream is None:
            _open_nowhere(number)
            stream = open(number, 'w', closefd=False)  # noqa: SIM115  as long as the process
            setattr(sys, name, stream)
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors='backslashreplace')
            if type(_raw(stream)) is io.FileIO and stream.fileno() == number:
                stream.flush()
                setattr(sys, name, _tolerant_copy(stream))


def _open_nowhere(number: int) -> None:
    """Let a file descriptor write to the null device."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    if nowhere != number:  # they are equal if the descriptor was closed
        os.dup2(nowhere, number)
        os.close(nowhere)


def _raw(stream: Any) -> Any:
    """The unbuffered file below a text stream.

    With ``PYTHONUNBUFFERED`` the stream's ``buffer`` is already that file.
    """
    buffer = getattr(stream, 'buffer', None)
    return getattr(buffer, 'raw', buffer)


def _tolerant_copy(stream: io.TextIOWrapper) -> io.TextIOWrapper:
    """A stream with the same settings on a :class:`TolerantOutput`."""
    raw: Any = TolerantOutput(stream.fileno(), 'wb', closefd=False)
    return io.TextIOWrapper(
        raw if stream.buffer is _raw(stream) else io.BufferedWriter(raw),
        stream.encoding,
        stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def is_read() -> bool:
    """False once a write to standard output has failed because nobody reads it."""
    return getattr(_raw(sys.stdout), 'is_read', True)


def exit_interrupted(sentence: str = 'Interrupted.') -> SystemExit:
    """Print a sentence, and return the exception to raise after Ctrl-C."""
    if sentence:
        print(sentence, file=sys.stderr)
    return SystemExit(INTERRUPTED_STATUS)
