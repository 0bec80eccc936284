"""Control characters in names have no effect in a terminal."""

import pytest

from anyfolder.terminal import aligned, printable, printable_lines


@pytest.mark.parametrize(
    ('text', 'shown'),
    [
        ('\x1b]0;title\x07', r'\x1b]0;title\x07'),  # a terminal's command
        ('\x9b31m', r'\x9b31m'),  # the same in one character
        ('a\r\nb\tc\0', r'a\r\nb\tc\x00'),
        ('\u202egnp.exe\u2066', r'\u202egnp.exe\u2066'),  # written from the right
        ('a\u2028b\u200bc\ufeff', r'a\u2028b\u200bc\ufeff'),
        (b'\xff.jpg'.decode('utf-8', 'surrogateescape'), r'\udcff.jpg'),
        ('\U000e0041', r'\U000e0041'),  # a tag, which no font shows
        ('Müller, 猫, नमस्ते', 'Müller, 猫, नमस्ते'),
        ('क्\u200dष 👩\u200d🔬', 'क्\u200dष 👩\u200d🔬'),  # joiners within words stay
        (7, '7'),
    ],
)
def test_printable(text, shown):
    assert printable(text) == shown
    printable(text).encode()


def test_lines_and_tabs_of_a_message_stay():
    assert printable_lines('a\n\tb\x1b[2J') == 'a\n\tb\\x1b[2J'


def test_columns_are_aligned():
    assert aligned([['a', 'bc'], ['def', 'g']]) == ['a    bc', 'def  g']
    assert aligned([['a', '1'], ['b', '23']], numbers=True) == ['a   1', 'b  23']
