"""Text files in any common encoding, and tables for a terminal."""

from collections.abc import Sequence
from pathlib import Path

from .untrusted_text import printable

ENCODINGS = {
    b'\xff\xfe': 'utf-16',
    b'\xfe\xff': 'utf-16',
    b'\xef\xbb\xbf': 'utf-8-sig',
}  # by their first bytes


def read_text(path: str | Path) -> str:
    """A file's text without a byte order mark. If it is not UTF-8, it is read as Windows-1252."""
    content = Path(path).read_bytes()
    encoding = next((name for mark, name in ENCODINGS.items() if content.startswith(mark)), 'utf-8')
    try:
        return content.decode(encoding)
    except UnicodeDecodeError:
        return content.decode('cp1252', errors='replace')


def read_lines(path: str | Path) -> list[str]:
    """The lines of a file that are not empty, without blanks at their ends."""
    return [line.strip() for line in read_text(path).splitlines() if line.strip()]


def aligned(rows: Sequence[Sequence[str]], numbers: bool = False) -> list[str]:
    """The lines of a table, the first column at the left, and the others too unless numbers."""
    adjusted = str.rjust if numbers else str.ljust
    rows = [list(map(printable, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        '  '.join([row[0].ljust(widths[0]), *map(adjusted, row[1:], widths[1:])]).rstrip()
        for row in rows
    ]
