"""Names in any script, as they are drawn."""

import shutil
import sys

import numpy as np
import pytest
from PIL import features

from anyfolder.pictures import letters
from anyfolder.pictures.drawn_labels import draw_objects
from anyfolder.pictures.letters import for_pillow

CJK = 'A font of Chinese', 'chinese.ttf'


@pytest.fixture
def fonts(monkeypatch):
    """DejaVu, and a font that has some Chinese letters, as far as the code is asked."""
    dejavu = letters.installed_fonts()[:1]
    has = letters.has_letter
    monkeypatch.setattr(letters, 'installed_fonts', lambda: [*dejavu, CJK])
    monkeypatch.setattr(
        letters,
        'has_letter',
        lambda font, letter: letter in '猫狗 0' if font == CJK else has(font, letter),
    )


@pytest.mark.parametrize(
    ('name', 'drawn'),
    [
        ('cat', 'cat'),
        ('', ''),
        ('кошка', 'кошка'),
        ('cafe\u0301', 'café'),
        ('鼠', 'U+9F20'),
        ('鼠鼠cat', 'U+9F20 U+9F20 cat'),
        ('\U0001f99c!', '(parrot) !'),
        ('\U0001f9a6\ufe0f', '(otter)'),
        ('a\u202eb', 'a\\u202eb'),  # reverses what follows
    ],
)
def test_what_no_font_has_is_described(fonts, name, drawn):
    assert for_pillow(name)[0] == drawn


def test_a_font_that_has_the_letters_is_taken(fonts):
    assert for_pillow('猫狗 0') == ('猫狗 0', 'chinese.ttf')
    assert for_pillow('é')[1].endswith('DejaVuSans.ttf')
    assert for_pillow('cat') == ('cat', None)
    # Pillow takes one font for a text.
    assert for_pillow('猫é')[0] == 'U+732B é'


@pytest.mark.parametrize('name', ['قطة', 'חתול', 'कि'])
def test_what_needs_shaping_is_described_without_it(monkeypatch, name):
    monkeypatch.setattr(features, 'check', lambda name: False)
    drawn, _ = for_pillow(name)
    assert not {*drawn} & {*name}
    assert drawn.startswith('U+0')


def test_without_fonts_names_are_ascii(monkeypatch):
    monkeypatch.setattr(letters, 'installed_fonts', list)
    assert for_pillow('é') == ('U+00E9', None)


def test_the_folders_of_fonts_are_searched_without_matplotlib(monkeypatch, tmp_path):
    file = letters.installed_fonts()[0][1]
    shutil.copy(file, tmp_path / 'a.ttf')
    (tmp_path / 'b.ttf').write_text('no font')
    monkeypatch.setattr(letters, 'FOLDERS', [str(tmp_path), str(tmp_path / 'none')])
    monkeypatch.setitem(sys.modules, 'matplotlib.font_manager', None)
    assert letters.installed_fonts.__wrapped__() == [('DejaVu Sans', str(tmp_path / 'a.ttf'))]


def test_a_letter_is_known_by_its_look():
    dejavu = letters.installed_fonts()[0]
    assert all(letters.has_letter(dejavu, letter) for letter in 'aé ж')
    assert not letters.has_letter(dejavu, '鼠')
    assert not letters.has_letter(CJK, 'a')  # a file that is gone


@pytest.mark.parametrize('name', ['кошка', 'קט'])
def test_other_scripts_are_drawn(name):
    """Not as boxes: two names of as many letters give two pictures."""
    if name == 'קט' and not (features.check('raqm') and features.check('fribidi')):
        pytest.skip('Raqm is not there')
    pictures = []
    for text in (name, name[::-1], name[:-1] + name[0]):
        picture = np.zeros((480, 640, 3), np.uint8)
        draw_objects(picture, np.array([[100.0, 100, 200, 200]]), [0], [text])
        pictures.append(picture)
    assert (pictures[0] == 255).any() or (pictures[0] != pictures[1]).any()
    assert all((pictures[0] != other).any() for other in pictures[1:])
