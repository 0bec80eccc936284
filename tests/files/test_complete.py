"""Files are written completely or not at all, on a disk that is full after a few bytes."""

import os
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch
from hypothesis import given
from hypothesis import strategies as st
from rejection import rejects

from anyfolder.complete import append_line, new_folder, replacing, write_text

WRITERS = {
    '.npz': lambda path: np.savez(path, a=np.zeros(100_000)),
    '.safetensors': lambda path: safetensors.torch.save_file(dict(a=torch.zeros(100_000)), path),
    '.pth': lambda path: torch.save(torch.zeros(100_000), path),
    '.json': lambda path: path.write_text('0' * 400_000),
}


@pytest.mark.parametrize('suffix', WRITERS)
@pytest.mark.parametrize('old', [True, False])
def test_a_full_disk_keeps_the_old_file(tmp_path, full_disk, suffix, old):
    path = tmp_path / f'file{suffix}'
    if old:
        path.write_text('old')
    kept = 'the previous file is unchanged' if old else 'nothing was left there'
    with (
        rejects(rf'file{suffix}.* cannot be written \(.*\); {kept}') as error,
        replacing(path) as temporary,
    ):
        WRITERS[suffix](temporary)
    assert '\n' not in str(error.value)
    assert [file.read_text() for file in tmp_path.iterdir()] == (['old'] if old else [])


@pytest.mark.parametrize('suffix', WRITERS)
def test_a_new_file_replaces_the_old_one(tmp_path, suffix):
    path, plain = tmp_path / 'new' / f'file{suffix}', tmp_path / 'plain'
    plain.touch()
    for _ in range(2):
        with replacing(path) as temporary:
            assert temporary.suffix == suffix
            WRITERS[suffix](temporary)
        assert path.stat().st_mode == plain.stat().st_mode
    assert [file.name for file in path.parent.iterdir()] == [path.name]


@given(st.integers(0, 20), st.sampled_from([ValueError, KeyboardInterrupt, SystemExit]))
def test_errors_keep_the_old_file(tmp_path_factory, num_written, error):
    path = tmp_path_factory.mktemp('folder') / 'file.txt'
    path.write_text('old')

    def fail() -> None:
        with replacing(path) as temporary:
            temporary.write_text('n' * num_written)
            raise error

    with pytest.raises(error):
        fail()
    assert [(file.name, file.read_text()) for file in path.parent.iterdir()] == [
        ('file.txt', 'old')
    ]


def test_mode_and_link_are_kept(tmp_path):
    (tmp_path / 'real.txt').write_text('old')
    (tmp_path / 'real.txt').chmod(0o640)
    (tmp_path / 'link.txt').symlink_to('real.txt')
    write_text(tmp_path / 'link.txt', 'new')
    assert (tmp_path / 'link.txt').is_symlink()
    assert (tmp_path / 'real.txt').read_text() == 'new'
    assert (tmp_path / 'real.txt').stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    ('target', 'words'),
    [
        ('source.txt', 'would be overwritten while it is read'),
        ('folder/../source.txt', 'would be overwritten while it is read'),
        ('folder', 'since it is a folder'),
        ('source.txt/x.txt', "source.txt' is a file; give another folder"),
        ('/dev/null', 'since it is not a regular file'),
        ('https://example.org/x.txt', 'is a URL'),
    ],
)
def test_invalid_targets_raise(tmp_path, target, words):
    (tmp_path / 'folder').mkdir()
    source = tmp_path / 'source.txt'
    source.write_text('old')
    path = target if ':' in target else Path(tmp_path, target)
    with rejects(words), replacing(path, [source]) as temporary:
        temporary.write_text('new')
    assert source.read_text() == 'old'


def test_a_full_disk_keeps_the_complete_lines_of_a_list(tmp_path, full_disk):
    path, line = tmp_path / 'new/list.txt', b'x' * 999
    for _ in range(65):
        append_line(path, line)
    with rejects(r"list.txt' cannot be written \(.*\); the previous file is unchanged"):
        append_line(path, line)
    assert path.read_bytes() == (line + b'\n') * 65  # the disk has 65,536 bytes


@pytest.mark.parametrize('exists', [True, False])
def test_a_full_disk_leaves_no_partial_folder(tmp_path, full_disk, exists):
    if exists:
        (tmp_path / 'folder').mkdir()

    def fill() -> None:
        with new_folder(tmp_path / 'folder') as folder:
            (folder / 'a.txt').write_text('a')
            WRITERS['.safetensors'](folder / 'model.safetensors')

    with rejects(r"folder' cannot be written \(.*\); nothing was left there"):
        fill()
    remaining = [str(path.relative_to(tmp_path)) for path in tmp_path.rglob('*')]
    assert remaining == (['folder'] if exists else [])
    with new_folder(tmp_path / 'folder') as folder:
        (folder / 'b').mkdir()
        (folder / 'b/a.txt').write_text('a')
    assert [path.name for path in tmp_path.rglob('*')] == ['folder', 'b', 'a.txt']


def test_paths_that_are_not_utf_8_keep_their_bytes(tmp_path):
    write_text(tmp_path / 'marker', os.fsdecode(b'run\xff/epoch_1.pth'))
    assert (tmp_path / 'marker').read_bytes() == b'run\xff/epoch_1.pth'
