"""Text for a terminal: escaped untrusted names, and aligned columns."""

from collections.abc import Sequence
from typing import Any

# The joiners of Persian, Hindi and emoji, the no-break space and the ideographic space.
JOINERS_AND_BLANKS = '\u200c\u200d\u00a0\u3000'


def printable(text: Any) -> str:
    r"""Text in one line with only printable characters; others are escaped as in a Python string.

    Escaped are control characters, such as those of terminal sequences, line breaks, characters
    that reverse the writing direction, and bytes of file names that are not UTF-8 (``\udcff`` for
    0xff).
    """
    return ''.join(
        letter
        if letter.isprintable() or letter in JOINERS_AND_BLANKS
        else letter.encode('unicode_escape').decode()
        for letter in str(text)
    )


def printable_lines(text: Any) -> str:
    """Like :func:`printable`, for text with several lines and tabs."""
    return '\n'.join('\t'.join(map(printable, line.split('\t'))) for line in str(text).split('\n'))


def aligned(rows: Sequence[Sequence[str]], numbers: bool = False) -> list[str]:
    """The lines of a table; with ``numbers``, all columns but the first are right-aligned."""
    adjusted = str.rjust if numbers else str.ljust
    rows = [list(map(printable, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        '  '.join([row[0].ljust(widths[0]), *map(adjusted, row[1:], widths[1:])]).rstrip()
        for row in rows
    ]
