"""Standard streams that take any text and outlast their readers, and the end after Ctrl-C."""

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
    """Let standard output and error take any text, and outlast their readers.

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
                setattr(sys, name, _outlasting(stream))


def _open_nowhere(number: int) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    if nowhere != number:  # they are equal if the descriptor was closed
        os.dup2(nowhere, number)
        os.close(nowhere)


def _raw(stream: Any) -> Any:
    """The raw file below a stream, which has no buffer with ``PYTHONUNBUFFERED``."""
    buffer = getattr(stream, 'buffer', None)
    return getattr(buffer, 'raw', buffer)


def _outlasting(stream: io.TextIOWrapper) -> io.TextIOWrapper:
    raw: Any = TolerantOutput(stream.fileno(), 'wb', closefd=False)
    return io.TextIOWrapper(
        raw if stream.buffer is _raw(stream) else io.BufferedWriter(raw),
        stream.encoding,
        stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def is_read() -> bool:
    """False once nobody reads the output."""
    return getattr(_raw(sys.stdout), 'is_read', True)


def exit_interrupted(sentence: str = 'Interrupted.') -> SystemExit:
    """The end of the program after Ctrl-C, with a sentence."""
    if sentence:
        print(sentence, file=sys.stderr)
    return SystemExit(INTERRUPTED_STATUS)
