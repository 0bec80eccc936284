"""What a command prints: any text, also where nobody reads it any more, and how Ctrl-C ends it."""

import errno
import io
import os
import sys
from typing import Any

INTERRUPTED = 130  # the status after Ctrl-C: 128 and the number of the signal, as of any command
UNREAD = 141  # the same of a command whose reader has ended
# Errors of a pipe or a terminal without a reader. A full disk is another matter: what is lost
# counts.
GONE = (errno.EPIPE, errno.ECONNRESET, errno.EIO)


class Outlasting(io.FileIO):
    """The descriptor of an output. From the moment that its reader is gone, it drops everything.

    So a training does not end with the ``head`` or the terminal that shows it.
    """

    is_read = True

    def write(self, content: bytes) -> int:  # type: ignore[override]
        try:
            return super().write(content)
        except OSError as error:
            if error.errno not in GONE:
                raise
            self.is_read = False
            _open_nowhere(self.fileno())  # for libraries in C, too
            return len(content)


def set_up_streams() -> None:
    """Let standard output and error take any text, and outlast their readers.

    Characters that the encoding lacks, and the bytes of a file name that is not in UTF-8, are
    printed as escapes. An output that the caller has closed is opened to nowhere: otherwise the
    next file to be opened would have its number, and get what libraries in C print.
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
    if nowhere != number:  # it is, if that was closed
        os.dup2(nowhere, number)
        os.close(nowhere)


def _raw(stream: Any) -> Any:
    """The descriptor below a stream, which has no buffer with ``PYTHONUNBUFFERED``."""
    buffer = getattr(stream, 'buffer', None)
    return getattr(buffer, 'raw', buffer)


def _outlasting(stream: io.TextIOWrapper) -> io.TextIOWrapper:
    raw: Any = Outlasting(stream.fileno(), 'wb', closefd=False)
    return io.TextIOWrapper(
        raw if stream.buffer is _raw(stream) else io.BufferedWriter(raw),
        stream.encoding,
        stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def is_read() -> bool:
    """False once nobody reads what the command prints."""
    return getattr(_raw(sys.stdout), 'is_read', True)


def interrupted(sentence: str = 'Interrupted.') -> SystemExit:
    """The end of the program after Ctrl-C, with a sentence."""
    if sentence:
        print(sentence, file=sys.stderr)
    return SystemExit(INTERRUPTED)
