"""Configs that move with their folder."""

import pytest

from vit_plugin.files.place import HERE, placed, relocated


@pytest.mark.parametrize(
    ('text', 'expected'),
    [
        ("a = '/runs/x'", f"a = '{HERE}'"),
        ('a = "/runs/x/train.txt"', f'a = "{HERE}/train.txt"'),
        ("a = ['/runs/x2/train.txt', '/data/runs/x/train.txt', '/runs']", None),
    ],
)
def test_only_what_is_in_the_folder_is_placed(text, expected):
    assert placed(text, '/runs/x', '/runs/x-2') == (expected or text)


def test_without_quotes_it_would_not_be_read_back():
    assert placed("a = '/runs/x/a.txt'", '/runs/x', '/runs/"x"') == 'a = \'/runs/"x"/a.txt\''


def test_what_the_present_folder_has_is_taken_there(tmp_path):
    (tmp_path / 'val.txt').touch()
    settings = dict(a=['/runs/x/val.txt', '/runs/x/none.txt'], b=dict(c=('/runs/x2/val.txt', 1)))
    assert relocated(settings, '/runs/x/', str(tmp_path)) == dict(
        a=[str(tmp_path / 'val.txt'), '/runs/x/none.txt'], b=dict(c=('/runs/x2/val.txt', 1))
    )
