"""A digest of a data set's files changes with their bytes, and not with their folder."""

import os
from pathlib import Path

import numpy as np
import pytest

from vit_plugin.data import content
from vit_plugin.data.content import content_digest


class Samples(list):
    """A data set as a list of MMEngine's data infos."""

    def get_data_info(self, index: int) -> dict:
        return self[index]


def write(folder: Path, count: int = 4, size: int = 100) -> Samples:
    """Images of random bytes with a mask each."""
    folder.mkdir()
    generator = np.random.default_rng(0)
    infos = Samples()
    for i in range(count):
        info = dict(img_path=str(folder / f'{i}.jpg'), seg_map_path=str(folder / f'{i}.png'))
        for path in info.values():
            Path(path).write_bytes(generator.bytes(size))
        infos.append(dict(info, gt_label=i))
    return infos


def flip_bit(path: str, position: int) -> None:
    """Flip a bit of one byte of a file. A second call restores it."""
    data = bytearray(Path(path).read_bytes())
    data[position] ^= 1
    Path(path).write_bytes(data)


def test_a_copied_folder_has_the_same_digest(tmp_path):
    assert content_digest(write(tmp_path / 'a')) == content_digest(write(tmp_path / 'b'))


@pytest.mark.parametrize('name', ['img_path', 'seg_map_path'])
def test_a_changed_byte_changes_the_digest(tmp_path, name):
    samples = write(tmp_path / 'a')
    before = content_digest(samples)
    flip_bit(samples[2][name], 50)
    assert content_digest(samples) != before


def test_exchanged_folders_change_the_digest(tmp_path):
    write(tmp_path / 'cat')
    (tmp_path / 'dog').mkdir()
    for path in (tmp_path / 'cat').iterdir():
        (tmp_path / 'dog' / path.name).write_bytes(path.read_bytes()[::-1])
    samples = Samples(
        dict(img_path=str(tmp_path / name / f'{i}.jpg'))
        for name in ('cat', 'dog')
        for i in range(4)
    )
    before = content_digest(samples)
    (tmp_path / 'cat').rename(tmp_path / 'x')
    (tmp_path / 'dog').rename(tmp_path / 'cat')
    (tmp_path / 'x').rename(tmp_path / 'dog')
    assert content_digest(samples) != before


def test_large_data_are_digested_by_sizes_and_blocks(tmp_path, monkeypatch):
    samples = write(tmp_path / 'a', size=400)
    monkeypatch.setattr(content, 'MAX_BYTES_READ', 1000)
    monkeypatch.setattr(content, 'BLOCK_BYTES', 16)
    before = content_digest(samples)
    flip_bit(samples[1]['img_path'], 100)  # not in a block
    assert content_digest(samples) == before
    for position in (0, 200, 399):
        flip_bit(samples[1]['img_path'], position)
        assert content_digest(samples) != before
        flip_bit(samples[1]['img_path'], position)
    monkeypatch.setattr(content, 'SAMPLED_FILES', 2)
    before = content_digest(samples)
    Path(samples[1]['img_path']).write_bytes(b'shorter')
    assert content_digest(samples) != before


def test_the_number_of_files_that_are_read_is_limited(tmp_path, monkeypatch):
    samples, calls = write(tmp_path / 'a', count=40, size=400), []
    monkeypatch.setattr(content, 'MAX_BYTES_READ', 1000)
    monkeypatch.setattr(content, 'SAMPLED_FILES', 5)
    digest = content._digest_blocks

    def counted(*args):
        calls.append(args)
        return digest(*args)

    monkeypatch.setattr(content, '_digest_blocks', counted)
    content_digest(samples)
    assert len(calls) == 5


def test_all_pixels_in_memory_are_digested():
    pixels = np.zeros((40, 40, 3), np.uint8)  # numpy abbreviates so many in its repr
    other = pixels.copy()
    other[20, 20] = 1
    assert content_digest(Samples([dict(img=pixels)])) != content_digest(Samples([dict(img=other)]))


@pytest.mark.parametrize(
    'samples', [[1, 2], Samples([dict(img_path='s3://a/b.jpg')]), Samples([dict(img_path='none')])]
)
def test_data_without_local_files_have_no_digest(samples):
    assert content_digest(samples) is None


def test_pipes_are_not_opened(tmp_path):
    """That would block until another program writes into them."""
    os.mkfifo(tmp_path / 'pipe.png')
    assert content_digest(Samples([dict(img_path=str(tmp_path / 'pipe.png'))])) is None
