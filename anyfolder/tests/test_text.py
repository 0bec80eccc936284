"""Text in common encodings is read, and a guessed encoding is recorded."""

import pytest
from rejection import rejects

from anyfolder.text import GUESSED_ENCODINGS, MISDECLARED, READ_AS_CP1252, read_lines, read_text


@pytest.mark.parametrize('encoding', ['utf-8', 'utf-8-sig', 'utf-16', 'latin-1', 'cp1252'])
def test_text_is_read_in_common_encodings(tmp_path, encoding):
    (tmp_path / 'x.txt').write_bytes('bär\r\n\r\n Größe, café \r\n'.encode(encoding))
    assert read_lines(tmp_path / 'x.txt') == ['bär', 'Größe, café']
    assert read_text(tmp_path / 'x.txt').startswith('bär')


def test_guessed_encoding_is_recorded_until_the_file_is_corrected(tmp_path):
    file = tmp_path / 'x.txt'
    for encoding, guess in (('cp1252', (READ_AS_CP1252, 'bär')), ('utf-8', None)):
        file.write_bytes('dog\nbär'.encode(encoding))
        assert read_text(file) == 'dog\nbär'
        assert GUESSED_ENCODINGS.get(str(file)) == guess


@pytest.mark.parametrize(
    ('text', 'declared', 'utf8_also_decodes'),
    [('方块', 'gb18030', True), ('猫', 'gb18030', False), ('日本', 'shift_jis', True),
     ('é', 'latin-1', True), ('кот', 'cp1251', True)],
)  # fmt: skip
def test_declared_encoding_is_compared_with_the_text(tmp_path, text, declared, utf8_also_decodes):
    """A file in the declared encoding is read so, and one in UTF-8 as UTF-8, with a warning.

    ``utf8_also_decodes`` is true if the text's UTF-8 bytes are also valid in the declared encoding,
    so that reading them as UTF-8 is a guess. In GB 18030, the bytes of 猫 are those of an accented
    letter in UTF-8.
    """
    file = tmp_path / 'x.xml'
    file.write_bytes(text.encode(declared))
    assert read_text(file, declared) == text
    assert GUESSED_ENCODINGS.get(str(file)) is None
    if utf8_also_decodes:
        file.write_bytes(text.encode('utf-8'))
        assert read_text(file, declared) == text
        assert GUESSED_ENCODINGS.get(str(file)) == (MISDECLARED, text)


@pytest.mark.parametrize('declared', ['undefined', 'idna', 'zlib', 'none'])
def test_declared_encodings_that_are_none_are_ignored(tmp_path, declared):
    (tmp_path / 'x.xml').write_text('bär', encoding='utf-8')
    assert read_text(tmp_path / 'x.xml', declared) == 'bär'


def test_utf_16_without_a_byte_order_mark_raises(tmp_path):
    (tmp_path / 'x.txt').write_bytes('dog\ncat\n'.encode('utf-16-le'))
    with rejects('is not UTF-8; save it as UTF-8'):
        read_text(tmp_path / 'x.txt')


def test_error_shows_the_first_non_ascii_characters_of_a_long_line(tmp_path):
    (tmp_path / 'x.json').write_bytes((f'{"a" * 99}狗猫{"b" * 99}').encode('gbk'))
    with rejects(r"'a{10}狗猫b{18}' \(gb18030\)"):
        read_text(tmp_path / 'x.json')


@pytest.mark.parametrize(
    ('text', 'encoding'),
    [
        ('狗\n猫咪', 'gb18030'),
        ('鴨子', 'big5'),
        ('アイ', 'cp932'),
        ('고양이', 'cp949'),
        ('кошка', 'cp1251'),
        ('łódka', 'cp1250'),
        ('éà', 'cp1252'),
    ],
)
def test_unknown_encoding_raises_with_the_likely_one(tmp_path, text, encoding):
    (tmp_path / 'x.txt').write_bytes(f'dog\n{text}\n'.encode(encoding))
    shown = rf"x.txt' is not UTF-8, and may contain .*{text.split()[0]}' \({encoding}\)"
    with rejects(f'{shown}.*save it as UTF-8'):
        read_text(tmp_path / 'x.txt')


def test_file_that_contradicts_its_byte_order_mark_raises(tmp_path):
    (tmp_path / 'x.txt').write_bytes(b'\xff\xfeabc')
    with rejects('save it as UTF-8'):
        read_text(tmp_path / 'x.txt')
