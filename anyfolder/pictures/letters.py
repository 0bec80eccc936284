"""Find a font for names in pictures, and describe the letters that no font has.

OpenCV draws only ASCII, and Pillow and matplotlib draw a letter that their font lacks as a box. So
the fonts of the system are searched, after DejaVu, which comes with matplotlib and has Latin,
Greek, Cyrillic, Arabic and Hebrew. A letter that no font has is described, as ``(cat face)`` for a
symbol or else by its number, such as ``U+4E2D``. Without the library Raqm, letters that are written
from the right or joined to others are described, too, since they would be reversed or separated.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

from PIL import ImageFont, features

from anyfolder.terminal import printable

FIRST_FONT = 'DejaVu Sans'
# Matches the names of fonts that have colored emoji, or a box for every letter.
NO_LETTERS = re.compile('emoji|last ?resort|blank', re.IGNORECASE)
FONT_FOLDERS = (
    '/usr/share/fonts',
    '/usr/local/share/fonts',
    '~/.local/share/fonts',
    '/System/Library/Fonts',
    '/Library/Fonts',
    '~/Library/Fonts',
    'C:/Windows/Fonts',
)
UPRIGHT = ('Regular', 'Book', 'Normal', 'Roman')  # names of styles
PROBED_HEIGHT = 16  # font size in pixels at which letters are compared
NO_LETTER = '\U0010ffff'  # a character that is in no font
# Unicode's directions of letters written from the right, and its categories of combining marks.
FROM_THE_RIGHT, MARKS = ('R', 'AL'), ('Mn', 'Mc')


def drawable_line(text: Any) -> tuple[str, str | None]:
    """Text in one line as it can be drawn, and the font file for Pillow.

    The file is None for a line in ASCII, which OpenCV can draw.
    """
    line = composed(printable(text))
    if line.isascii():
        return line, None
    fonts = fonts_of(line)
    # A single font is used: one that has all letters, or else the first one.
    complete = [font for font in fonts if all(has_letter(font, letter) for letter in line)]
    chosen = (complete or fonts)[:1]
    is_shaped = all(map(features.check, ('raqm', 'fribidi')))  # Raqm needs FriBiDi to reorder
    line = described(line, chosen, is_shaped)
    return line, None if line.isascii() else chosen[0][1]


def composed(text: str) -> str:
    """Text with composed letters, without emoji variation marks."""
    return unicodedata.normalize('NFC', text).translate({0xFE0E: None, 0xFE0F: None})


def fonts_of(text: str) -> list[tuple[str, str]]:
    """The first font, and for each letter that it lacks another font, if one has the letter."""
    fonts = installed_fonts()[:1]
    for letter in text:
        if not any(has_letter(font, letter) for font in fonts):
            fonts += [font for font in installed_fonts() if has_letter(font, letter)][:1]
    return fonts


@cache
def installed_fonts() -> list[tuple[str, str]]:
    """The names and files of upright fonts: matplotlib's list where it is installed."""
    try:
        from matplotlib.font_manager import fontManager
    except ImportError:
        fonts = set(_fonts_in_folders())
    else:
        fonts = {
            (entry.name, entry.fname)
            for entry in fontManager.ttflist
            if (entry.style, entry.weight) == ('normal', 400)
        }
    with_letters = [font for font in fonts if not NO_LETTERS.search(font[0])]
    return sorted(with_letters, key=lambda font: (font[0] != FIRST_FONT, font))


def _fonts_in_folders() -> Iterator[tuple[str, str]]:
    """The names and files of the upright fonts in the folders of the system and of the user."""
    for folder in FONT_FOLDERS:
        with suppress(RuntimeError):  # the user may have no home, as in a container
            folder = str(Path(folder).expanduser())
        for file in sorted(Path(folder).rglob('*')):
            if file.suffix.lower() in ('.ttf', '.otf', '.ttc'):
                with suppress(OSError):
                    name, style = _open_font(str(file)).getname()
                    if name and style in UPRIGHT:
                        yield name, str(file)


@cache
def _open_font(file: str) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(file, PROBED_HEIGHT)


@cache
def has_letter(font: tuple[str, str], letter: str) -> bool:
    """True if a font draws a letter differently from one that no font has."""
    try:
        drawn = _open_font(font[1]).getmask2(letter)
        missing = _open_font(font[1]).getmask2(NO_LETTER)
    except (OSError, ValueError):
        return False
    # Titles of charts can have line breaks, which no font draws.
    return letter == '\n' or (bytes(drawn[0]), drawn[1]) != (bytes(missing[0]), missing[1])


def described(text: str, fonts: Sequence[tuple[str, str]], is_shaped: bool) -> str:
    """The text with a description of each letter that cannot be drawn.

    Args:
        text: the text.
        fonts: the names and files of the fonts that are used.
        is_shaped: whether letters from the right and combining marks can be drawn.
    """

    def is_drawn(letter: str) -> bool:
        needs_shaping = (
            unicodedata.bidirectional(letter) in FROM_THE_RIGHT
            or unicodedata.category(letter) in MARKS
        )
        if not fonts:
            return letter.isascii()  # OpenCV draws the line
        return (is_shaped or not needs_shaping) and any(has_letter(font, letter) for font in fonts)

    runs = [(drawn, ''.join(run)) for drawn, run in groupby(text, is_drawn)]
    if all(drawn for drawn, _ in runs):
        return text
    parts = (
        run if drawn else f' {" ".join(filter(None, map(_description, run)))} '
        for drawn, run in runs
    )
    return re.sub(' +', ' ', ''.join(parts)).strip()


def _description(letter: str) -> str:
    """The description of a letter; empty for invisible ones."""
    category = unicodedata.category(letter)
    if category == 'Cf':  # format characters
        return ''
    name = unicodedata.name(letter, '').lower()
    is_symbol = category == 'So'
    return f'({name})' if name and is_symbol else f'U+{ord(letter):04X}'
