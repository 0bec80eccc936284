"""Names in pictures: in a font that has their letters, and without the letters that none has.

OpenCV draws ASCII alone, and Pillow and matplotlib draw a letter that their font lacks as a box. So
the fonts of the system are asked, after DejaVu, which comes with matplotlib and has Latin, Greek,
Cyrillic, Arabic and Hebrew. What no font has is described: ``(cat face)`` for a symbol, else its
number, as ``U+4E2D``; and so are letters that are written from the right or joined to others, where
the library Raqm is missing, which would reverse or part them.
"""

import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from itertools import groupby
from typing import Any

from anyfolder.terminal import printable

FIRST = 'DejaVu Sans'
# In the names of fonts that have colored pictures, or a box for every letter.
NO_LETTERS = re.compile('emoji|last ?resort|blank', re.IGNORECASE)
FROM_THE_RIGHT, MARKS = ('R', 'AL'), ('Mn', 'Mc')  # unicodedata's classes


def for_pillow(text: Any) -> tuple[str, str | None]:
    """Text in one line as it can be drawn, and the file of the font; None for ASCII."""
    from PIL import features

    line = _composed(printable(text))
    if line.isascii():
        return line, None
    fonts = _fonts_of(line)
    whole = [font for font in fonts if all(_has(font, letter) for letter in line)]
    chosen = (whole or fonts)[:1]
    is_shaped = all(map(features.check, ('raqm', 'fribidi')))
    line = _described(line, chosen, is_shaped)
    return line, None if line.isascii() else chosen[0][1]


def for_matplotlib(text: str) -> tuple[str, list[str]]:
    """Text as it can be drawn, and the names of the fonts."""
    from matplotlib import ft2font

    composed = _composed(text)
    fonts = _fonts_of(composed)
    is_shaped = hasattr(ft2font, '__libraqm_version__')
    return _described(composed, fonts, is_shaped), [name for name, _ in fonts]


def _composed(text: str) -> str:
    """Text with letters that include their accents, without marks of colored pictures."""
    return unicodedata.normalize('NFC', text).translate({0xFE0E: None, 0xFE0F: None})


def _fonts_of(text: str) -> list[tuple[str, str]]:
    """The first font, and one for each letter that those before lack, if there is one."""
    fonts = _installed()[:1]
    for letter in text:
        if not any(_has(font, letter) for font in fonts):
            fonts += [font for font in _installed() if _has(font, letter)][:1]
    return fonts


@cache
def _installed() -> list[tuple[str, str]]:
    """The names and files of the system's upright fonts; none without matplotlib."""
    try:
        from matplotlib.font_manager import fontManager
    except ImportError:
        return []
    regular = {
        (entry.name, entry.fname)
        for entry in fontManager.ttflist
        if (entry.style, entry.weight) == ('normal', 400) and not NO_LETTERS.search(entry.name)
    }
    return sorted(regular, key=lambda font: (font[0] != FIRST, font))


@cache
def _has(font: tuple[str, str], letter: str) -> bool:
    from matplotlib.font_manager import get_font

    return letter == '\n' or get_font(font[1]).get_char_index(ord(letter)) != 0


def _described(text: str, fonts: Sequence[tuple[str, str]], is_shaped: bool) -> str:
    """The text with a description of each letter that the fonts lack, or that needs shaping."""

    def is_drawn(letter: str) -> bool:
        needs_shape = (
            unicodedata.bidirectional(letter) in FROM_THE_RIGHT
            or unicodedata.category(letter) in MARKS
        )
        return (is_shaped or not needs_shape) and any(_has(font, letter) for font in fonts)

    runs = [(drawn, ''.join(run)) for drawn, run in groupby(text, is_drawn)]
    if all(drawn for drawn, _ in runs):
        return text
    parts = (
        run if drawn else f' {" ".join(filter(None, map(_name, run)))} ' for drawn, run in runs
    )
    return re.sub(' +', ' ', ''.join(parts)).strip()


def _name(letter: str) -> str:
    """What stands for a letter: nothing for those that are not seen."""
    kind = unicodedata.category(letter)
    if kind == 'Cf':
        return ''
    name = unicodedata.name(letter, '').lower()
    return f'({name})' if name and kind == 'So' else f'U+{ord(letter):04X}'
