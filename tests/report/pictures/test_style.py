"""Names in figures are drawn with fonts that have their letters."""

import pytest

from anyfolder.pictures import letters
from vit_plugin.report.pictures.style import for_matplotlib

CJK = 'A font of Chinese', 'chinese.ttf'


@pytest.fixture(autouse=True)
def fonts(monkeypatch):
    """Pretend that DejaVu and a font with a few Chinese letters are installed."""
    dejavu, has = letters.installed_fonts()[:1], letters.has_letter
    monkeypatch.setattr(letters, 'installed_fonts', lambda: [*dejavu, CJK])
    monkeypatch.setattr(
        letters,
        'has_letter',
        lambda font, letter: letter in '猫狗 0' if font == CJK else has(font, letter),
    )


@pytest.mark.parametrize(('name', 'drawn'), [('кошка', 'кошка'), ('鼠cat', 'U+9F20 cat')])
def test_letters_without_a_font_are_written_as_code_points(name, drawn):
    assert for_matplotlib(name)[0] == drawn


def test_all_needed_fonts_are_returned():
    assert for_matplotlib('猫é') == ('猫é', ['DejaVu Sans', CJK[0]])
