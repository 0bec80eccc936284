"""Limits for untrusted files: sizes, counts and depths, in one table.

A small file can expand to far more than it holds: zeros in an archive, aliases in YAML, the width
in a header, a number that becomes a length. What a file requests is checked against this table
before time or memory is spent on it.
"""

import math
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from anyfolder.errors import InputError

VARIABLE = 'ANYFOLDER_LIMITS'  # environment variable; 10 raises all limits tenfold

# The limits of a file, or of one element in it. Annotations can be large: COCO's largest file has
# 0.5 GB and 4 million lists and objects. Files with names or settings are small.
LIMITS = {
    'bytes of text': 1 << 30,
    'lines': 20_000_000,
    'characters in a line': 1_000_000,
    'characters in a line of a list': 10_000,
    'cells in a table': 20_000_000,
    'bytes of JSON': 2 << 30,
    'lists and objects of JSON': 20_000_000,
    'levels of JSON': 100,
    'bytes of YAML': 8 << 20,
    'values of YAML': 250_000,
    'levels of YAML': 100,
    'bytes of XML': 64 << 20,
    'elements of XML': 1_000_000,
    'levels of XML': 100,
    'classes': 1_000_000,
    'paths of a split': 1_000,
    'levels of folders': 100,
    'times the bytes of its file, unpacked': 20,
    'bytes of an image': 1 << 30,
    'values in an image of bands': 1 << 28,
    'pages': 10_000,
    'arrays in an archive': 10_000,
    'slices': 100_000,
    'scans of a JPEG': 64,
}


class LimitError(InputError):
    """A file exceeds a limit."""


def check_limit(
    source: object, what: str, amount: float, more: str = '', limits: Mapping[str, int] = LIMITS
) -> None:
    """Check a request of a file against the limit.

    Args:
        source: the file.
        what: a key of the table.
        amount: the requested amount, as far as it was counted.
        more: words after ``what`` in the message, such as where the amount comes from.
        limits: the table.

    Raises:
        LimitError: if the amount exceeds the limit.
    """
    if amount > limit(what, limits):
        raise exceeded(source, what, more, limits)


def read_within(path: str | Path, what: str) -> bytes:
    """The content of a file whose size is within a limit.

    Raises:
        LimitError: if the file is larger.
        OSError: if it cannot be read.
    """
    check_limit(path, what, Path(path).stat().st_size)
    return Path(path).read_bytes()


def exceeded(
    source: object, what: str, more: str = '', limits: Mapping[str, int] = LIMITS
) -> LimitError:
    """The error for a file that exceeds the limit, see :func:`check_limit`."""
    return LimitError(f'{str(source)!r} {_predicate(what, more, limits)}.')


def describe_excess(what: str, amount: float) -> str:
    """The words for a file that exceeds a limit; empty for any other file.

    Args:
        what, amount: see :func:`check_limit`.

    Returns:
        A sentence without its subject and its period: ``has more than 64 scans of a JPEG, ...``.
    """
    return _predicate(what) if amount > limit(what) else ''


def _predicate(what: str, more: str = '', limits: Mapping[str, int] = LIMITS) -> str:
    """The sentence about an exceeded limit, without its subject and its period."""
    return (
        f'has more than {limit(what, limits):,} {what}{more}, the limit for untrusted files; if '
        f'that is correct, set {VARIABLE}={10 * _factor():g} in the environment for tenfold limits'
    )


def limit(what: str, limits: Mapping[str, int] = LIMITS) -> int:
    """The limit in effect.

    Raises:
        InputError: if the environment variable is not a positive number.
    """
    return int(min(limits[what] * _factor(), sys.maxsize))  # a huge factor gives infinity


def _factor() -> float:
    """The factor for all limits, from the environment."""
    text = os.environ.get(VARIABLE) or '1'
    try:
        factor = float(text)
    except ValueError:
        factor = math.nan
    if not 0 < factor < math.inf:
        raise InputError(
            f'{VARIABLE}={text!r} in the environment is not a positive number; give one, such as '
            '10 for tenfold limits, or remove it.'
        )
    return factor
