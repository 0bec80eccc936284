"""Normalize and compare class names, so that names that look the same are one class."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from anyfolder.errors import InputError

from .findings import Findings

# Zero-width space, word joiner, byte order mark, soft hyphen and direction marks. The joiners of
# Persian and emoji belong to a name.
INVISIBLE = dict.fromkeys((0x200B, 0x2060, 0xFEFF, 0xAD, 0x200E, 0x200F))
JOINERS = dict.fromkeys((0x200C, 0x200D, 0xFE0F))
# Cyrillic and Greek letters, and the Latin ones that look like them.
LOOK_ALIKES = str.maketrans(
    'асеорхуіјѕԁһкмтвнАВЕКМНОРСТХУІЈЅΑΒΕΖΗΙΚΜΝΟΡΤΥΧορνα',
    'aceopxyijsdhkmtbhABEKMHOPCTXYIJSABEZHIKMNOPTYXopva',
)
# The ending that Windows and browsers add to the name of a copy.
COPY_ENDING = re.compile(r' (\(\d+\)|- copy( \(\d+\))?)$', re.IGNORECASE)


def nfc(name: str) -> str:
    """A name with composed letters, since macOS writes accented letters as two characters."""
    return unicodedata.normalize('NFC', name)


@cache
def class_name(text: str) -> str:
    """The normal form of a name: composed, with single spaces and without invisible characters."""
    composed = ''.join(
        unicodedata.normalize('NFKC', letter)
        if unicodedata.east_asian_width(letter) in 'FH'
        else letter
        for letter in nfc(str(text).translate(INVISIBLE))
    )
    return ' '.join(composed.split())


def check_same_names(named: Sequence[tuple[Path, Any]]) -> None:
    """Raise an ``InputError`` if files name different classes: class numbers would be ambiguous.

    Args:
        named: files, each with the class names in it in any comparable form.
    """
    for file, names in named[1:]:
        if names != named[0][1]:
            raise InputError(
                f'{str(named[0][0])!r} and {str(file)!r} name different classes, or in a different '
                'order; keep the one that belongs to the labels.'
            )


def warn_merged(written: Iterable[str], findings: Findings) -> None:
    """Warn of different spellings of one class."""
    first: dict[str, str] = {}
    for name in dict.fromkeys(written):
        other = first.setdefault(class_name(name), name)
        if other.strip() != name.strip():
            findings.warn(
                'class names that look the same, taken as one',
                f'{other!r} and {name!r}',
            )


def warn_repeated(names: Iterable[str], file: Path | None, findings: Findings) -> None:
    """Warn of names that a file gives to several classes."""
    findings.warn_all(
        'categories with the same name, taken as one class',
        (f'{name!r} in {file}' for name, count in Counter(names).items() if count > 1),
    )


def near_twins(names: Iterable[str]) -> dict[str, str]:
    """For each name, the first that only differs in case, blanks, hyphens or look-alike letters."""
    first: dict[str, str] = {}
    return {name: first.setdefault(twin_key(name), name) for name in sorted(names)}


def twin_key(name: str) -> str:
    """A form of a name that is equal for look-alike names."""
    name = COPY_ENDING.sub('', name)
    plain = name.translate(LOOK_ALIKES).translate(JOINERS).casefold()
    bare = ''.join(letter for letter in plain if letter not in ' _-')
    return name if bare.isdecimal() else bare
