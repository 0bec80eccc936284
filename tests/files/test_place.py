"""Paths in configs are rewritten, so that a config can move with its folder."""

import pytest

from vit_plugin.files.place import HERE, make_paths_relative, relocate_paths


@pytest.mark.parametrize(
    ('text', 'expected'),
    [
        ("a = '/runs/x'", f"a = '{HERE}'"),
        ('a = "/runs/x/train.txt"', f'a = "{HERE}/train.txt"'),
        ("a = ['/runs/x2/train.txt', '/data/runs/x/train.txt', '/runs']", None),
    ],
)
def test_only_paths_in_the_folder_are_replaced(text, expected):
    assert make_paths_relative(text, '/runs/x', '/runs/x-2') == (expected or text)


def test_folders_with_quotes_are_written_as_absolute_paths():
    assert (
        make_paths_relative("a = '/runs/x/a.txt'", '/runs/x', '/runs/"x"')
        == 'a = \'/runs/"x"/a.txt\''
    )


def test_files_of_the_present_folder_replace_moved_ones(tmp_path):
    (tmp_path / 'val.txt').touch()
    settings = dict(a=['/runs/x/val.txt', '/runs/x/none.txt'], b=dict(c=('/runs/x2/val.txt', 1)))
    assert relocate_paths(settings, '/runs/x/', str(tmp_path)) == dict(
        a=[str(tmp_path / 'val.txt'), '/runs/x/none.txt'], b=dict(c=('/runs/x2/val.txt', 1))
    )
