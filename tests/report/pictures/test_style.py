"""Names in matplotlib's figures, in fonts that have their letters."""

import pytest

from anyfolder.pictures import letters
from vit_plugin.report.pictures.style import for_matplotlib

CJK = 'A font of Chinese', 'chinese.ttf'


@pytest.fixture(autouse=True)
def fonts(monkeypatch):
    """DejaVu, and a font that has some Chinese letters, as far as the code is asked."""
    dejavu, has = letters.installed_fonts()[:1], letters.has_letter
    monkeypatch.setattr(letters, 'installed_fonts', lambda: [*dejavu, CJK])
    monkeypatch.setattr(
        letters,
        'has_letter',
        lambda font, letter: letter in '猫狗 0' if font == CJK else has(font, letter),
    )


@pytest.mark.parametrize(('name', 'drawn'), [('кошка', 'кошка'), ('鼠cat', 'U+9F20 cat')])
def test_what_no_font_has_is_described(name, drawn):
    assert for_matplotlib(name)[0] == drawn


def test_each_letter_has_its_font():
    assert for_matplotlib('猫é') == ('猫é', ['DejaVu Sans', CJK[0]])
