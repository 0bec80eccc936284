"""Read text files in any common encoding."""

import re
from contextlib import suppress
from pathlib import Path

from anyfolder.errors import InputError

from .limits import check_limit, read_within
from .terminal import printable

# Encodings by the first bytes of a text, its byte order mark.
ENCODINGS = {b'\xff\xfe': 'utf-16', b'\xfe\xff': 'utf-16', b'\xef\xbb\xbf': 'utf-8-sig'}
# Other encodings, shown if that of a text is unknown: Chinese, Japanese, Korean, Russian, and
# Central and Western European languages.
OTHER_ENCODINGS = ('gb18030', 'big5', 'cp932', 'cp949', 'cp1251', 'cp1250', 'cp1252')
# An accented Western European letter between ASCII letters, or two within a word. Letters of other
# scripts take two such bytes, and their words have no ASCII letters.
ACCENT = re.compile(
    rb'(?<![\x80-\xff])[\xc0-\xff](?![\x80-\xff])|(?<=[A-Za-z])[\xc0-\xff]{2}(?=[a-z])'
)
THREE_BYTES = '\u0800'  # the first character with three bytes in UTF-8
# The files whose encoding was guessed -> what the reader of a folder reports of those in it,
# READ_AS_CP1252 or MISDECLARED, and a line of the file. `read_text` adds them.
GUESSED_ENCODINGS: dict[str, tuple[str, str]] = {}
READ_AS_CP1252 = (
    'files that are not UTF-8, read as Windows-1252; save those with wrong letters as UTF-8'
)
MISDECLARED = 'files in UTF-8 that declare another encoding, read as UTF-8'


def read_text(path: str | Path, declared_encoding: str = '', kind: str = 'text') -> str:
    """A file's text without a byte order mark.

    Text that is neither UTF-8 nor has a mark is read as Windows-1252 if that is likely. Such a file
    is added to :data:`GUESSED_ENCODINGS`, to be reported; so is UTF-8 that declares another
    encoding.

    Args:
        path: the file.
        declared_encoding: the encoding that the file declares. Valid UTF-8 is read as UTF-8
            nevertheless, unless each letter can be one of two bytes in the declared encoding.
        kind: the kind of text, ``bytes of ...`` in :data:`~anyfolder.limits.LIMITS`.

    Raises:
        InputError: if the file is too large, or if its encoding is unknown.
    """
    content = read_within(path, f'bytes of {kind}')
    GUESSED_ENCODINGS.pop(str(path), None)
    marked = next((name for mark, name in ENCODINGS.items() if content.startswith(mark)), '')
    text, declared_text = _decode(content, marked or 'utf-8'), _decode(content, declared_encoding)
    if declared_text is not None:
        in_two_bytes = len(declared_text) < len(content)
        # Chinese and Japanese letters have three bytes in UTF-8. Text that is also valid UTF-8 and
        # has none of these is more likely in the two-byte encoding that the file declares.
        if text is None or (in_two_bytes and max(text) < THREE_BYTES):
            return declared_text
    what = MISDECLARED if declared_text not in (None, text) else ''
    if text is None:
        text, what = decode_unknown(content, str(path), 'save it as UTF-8'), READ_AS_CP1252
    if what:
        GUESSED_ENCODINGS[str(path)] = what, _first_non_ascii_line(text)
    return text


def _first_non_ascii_line(text: str) -> str:
    """The first line that is not ASCII; empty if only line breaks are not ASCII."""
    return next((line for line in text.splitlines() if not line.isascii()), '')


def _decode(content: bytes, encoding: str) -> str | None:
    """Text in an encoding; None if the content is invalid in it, or if Python does not know it."""
    with suppress(UnicodeError, LookupError):  # some codecs, such as 'undefined', raise the former
        if '\0' not in (text := content.decode(encoding)):  # otherwise UTF-16 without a mark
            return text
    return None


def decode_unknown(content: bytes, name: str, remedy: str) -> str:
    """Text decoded as Windows-1252, if all non-ASCII bytes are accented letters among ASCII ones.

    Raises:
        InputError: for any other content, with the first non-ASCII line in possible encodings.
    """
    if ACCENT.sub(b'', content).isascii() and b'\0' not in content:
        return content.decode('cp1252')
    readings = []
    if line := next((line for line in content.splitlines() if not line.isascii()), b''):
        for encoding in OTHER_ENCODINGS:
            with suppress(UnicodeDecodeError):
                text = line.decode(encoding)
                start = next(i for i, letter in enumerate(text) if not letter.isascii())
                readings.append(f'{text[max(start - 10, 0) : start + 20].strip()!r} ({encoding})')
    may = f', and may contain {" or ".join(readings)}' if readings else ''
    raise InputError(f'{printable(name)!r} is not UTF-8{may}; {remedy}.')


# The limits of the length of a line, keys of LIMITS.
LONGEST, LONGEST_IN_LIST = 'characters in a line', 'characters in a line of a list'


def read_lines(path: str | Path, longest: str = LONGEST) -> list[str]:
    """The non-empty lines of a file, without blanks at their ends.

    Args:
        path: the file.
        longest: the limit of the line length, a key of :data:`~anyfolder.limits.LIMITS`.

    Raises:
        InputError: see :func:`read_text`, and if there are too many lines or a line is too long.
    """
    return [line.strip() for line in lines_in(read_text(path), path, longest) if line.strip()]


def lines_in(
    text: str, path: str | Path, longest: str = LONGEST, keepends: bool = False
) -> list[str]:
    """The lines of the text of a file, within the limits of :func:`read_lines`."""
    check_limit(path, 'lines', text.count('\n') + text.count('\r'))
    lines = text.splitlines(keepends)
    check_limit(path, longest, max(map(len, lines), default=0))
    return lines
