"""Text for a terminal: escaped untrusted names, and aligned columns."""

from collections.abc import Sequence
from typing import Any

JOINERS_AND_BLANKS = '\u200c\u200d\u00a0\u3000'  # joiners of Persian, Hindi, emoji


def printable(text: Any) -> str:
    r"""Text in one line that only prints: other characters are escaped as in a string of Python.

    These are control characters, such as those that begin a terminal's commands, line breaks,
    characters that reverse the direction of writing, and the bytes of a file name that is not in
    UTF-8 (``\udcff`` for 0xff).
    """
    return ''.join(
        letter
        if letter.isprintable() or letter in JOINERS_AND_BLANKS
        else letter.encode('unicode_escape').decode()
        for letter in str(text)
    )


def printable_lines(text: Any) -> str:
    """As :func:`printable`, for text in several lines, with tabs."""
    return '\n'.join('\t'.join(map(printable, line.split('\t'))) for line in str(text).split('\n'))


def aligned(rows: Sequence[Sequence[str]], numbers: bool = False) -> list[str]:
    """The lines of a table, the first column at the left, and the others too unless numbers."""
    adjusted = str.rjust if numbers else str.ljust
    rows = [list(map(printable, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        '  '.join([row[0].ljust(widths[0]), *map(adjusted, row[1:], widths[1:])]).rstrip()
        for row in rows
    ]
