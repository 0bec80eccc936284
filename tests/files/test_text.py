import pytest

from vit_plugin.files.text import read_lines, read_text


@pytest.mark.parametrize('encoding', ['utf-8', 'utf-8-sig', 'utf-16', 'latin-1', 'cp1252'])
def test_text_is_read_as_it_was_meant(tmp_path, encoding):
    (tmp_path / 'x.txt').write_bytes('bär\r\n\r\n café \r\n'.encode(encoding))
    assert read_lines(tmp_path / 'x.txt') == ['bär', 'café']
    assert read_text(tmp_path / 'x.txt').startswith('bär')
