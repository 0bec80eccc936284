"""Names in any script, as they are drawn."""

import shutil
import sys

import numpy as np
import pytest
from PIL import features

from anyfolder.pictures import letters
from anyfolder.pictures.drawn_labels import draw_objects
from anyfolder.pictures.letters import drawable_line

CJK = 'A font of Chinese', 'chinese.ttf'  # title, and a file that does not exist


@pytest.fixture
def fonts(monkeypatch):
    """Install only DejaVu and a font that claims to have four letters: 猫, 狗, a space and 0."""
    dejavu = letters.installed_fonts()[:1]  # the first one
    has_letter = letters.has_letter
    monkeypatch.setattr(letters, 'installed_fonts', lambda: [*dejavu, CJK])
    monkeypatch.setattr(
        letters,
        'has_letter',
        lambda font, letter: letter in '猫狗 0' if font == CJK else has_letter(font, letter),
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
def test_letters_without_a_font_are_described(fonts, name, drawn):
    assert drawable_line(name)[0] == drawn


def test_font_with_all_letters_is_chosen(fonts):
    assert drawable_line('猫狗 0') == ('猫狗 0', 'chinese.ttf')
    assert drawable_line('é')[1].endswith('DejaVuSans.ttf')
    assert drawable_line('cat') == ('cat', None)
    # Pillow draws a text in one font.
    assert drawable_line('猫é')[0] == 'U+732B é'


@pytest.mark.parametrize('name', ['قطة', 'חתול', 'कि'])
def test_scripts_that_need_shaping_are_described_without_raqm(monkeypatch, name):
    monkeypatch.setattr(features, 'check', lambda name: False)
    drawn, _ = drawable_line(name)
    assert not {*drawn} & {*name}
    assert drawn.startswith('U+0')


def test_without_fonts_names_are_ascii(monkeypatch):
    monkeypatch.setattr(letters, 'installed_fonts', list)
    assert drawable_line('é') == ('U+00E9', None)
    assert drawable_line('Bär') == ('B U+00E4 r', None)


def test_font_folders_are_searched_without_matplotlib(monkeypatch, tmp_path):
    file = letters.installed_fonts()[0][1]
    shutil.copy(file, tmp_path / 'a.ttf')
    (tmp_path / 'b.ttf').write_text('no font')
    monkeypatch.setattr(letters, 'FONT_FOLDERS', [str(tmp_path), str(tmp_path / 'none')])
    monkeypatch.setitem(sys.modules, 'matplotlib.font_manager', None)
    assert letters.installed_fonts.__wrapped__() == [('DejaVu Sans', str(tmp_path / 'a.ttf'))]


def test_has_letter_compares_pictures():
    dejavu = letters.installed_fonts()[0]
    assert all(letters.has_letter(dejavu, letter) for letter in 'aé ж')
    assert not letters.has_letter(dejavu, '鼠')
    assert not letters.has_letter(CJK, 'a')  # its file does not exist


@pytest.mark.parametrize('name', ['кошка', 'קט'])
def test_other_scripts_are_drawn(name):
    """Not as placeholder boxes: names of equally many letters give different pictures."""
    if name == 'קט' and not (features.check('raqm') and features.check('fribidi')):
        pytest.skip('Raqm or FriBiDi is not installed')
    pictures = []
    for text in (name, name[::-1], name[:-1] + name[0]):
        picture = np.zeros((480, 640, 3), np.uint8)
        draw_objects(picture, np.array([[100.0, 100, 200, 200]]), [0], [text])
        pictures.append(picture)
    assert all((pictures[0] != other).any() for other in pictures[1:])


def test_user_without_a_home_has_no_own_fonts(monkeypatch):
    def fail(path):
        raise RuntimeError('Could not determine home directory.')

    monkeypatch.setattr(letters.Path, 'expanduser', fail)
    monkeypatch.setattr(letters, 'FONT_FOLDERS', ['~/fonts'])
    monkeypatch.setitem(sys.modules, 'matplotlib.font_manager', None)
    assert letters.installed_fonts.__wrapped__() == []
