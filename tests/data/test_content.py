"""A digest of files: other bytes change it, another folder for the same ones does not."""

from pathlib import Path

import numpy as np
import pytest

from vit_plugin.data import content
from vit_plugin.data.content import content_digest


class Samples(list):
    """A data set: a list of what MMEngine knows of each sample."""

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


def change(path: str, at: int) -> None:
    """Give one byte of a file another value, and leave its size."""
    found = bytearray(Path(path).read_bytes())
    found[at] ^= 1
    Path(path).write_bytes(found)


def test_a_copy_elsewhere_is_the_same(tmp_path):
    assert content_digest(write(tmp_path / 'a')) == content_digest(write(tmp_path / 'b'))


@pytest.mark.parametrize('name', ['img_path', 'seg_map_path'])
def test_one_other_byte_of_an_image_or_mask_is_seen(tmp_path, name):
    samples = write(tmp_path / 'a')
    before = content_digest(samples)
    change(samples[2][name], 50)
    assert content_digest(samples) != before


def test_two_folders_that_were_exchanged_are_seen(tmp_path):
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


def test_large_data_count_by_sizes_and_blocks(tmp_path, monkeypatch):
    samples = write(tmp_path / 'a', size=400)
    monkeypatch.setattr(content, 'READ_WHOLE', 1000)
    monkeypatch.setattr(content, 'BLOCK', 16)
    before = content_digest(samples)
    change(samples[1]['img_path'], 100)  # between the blocks
    assert content_digest(samples) == before
    for at in (0, 200, 399):
        change(samples[1]['img_path'], at)
        assert content_digest(samples) != before
        change(samples[1]['img_path'], at)
    monkeypatch.setattr(content, 'READ_FILES', 2)
    before = content_digest(samples)
    Path(samples[1]['img_path']).write_bytes(b'shorter')
    assert content_digest(samples) != before


def test_what_is_read_has_a_bound(tmp_path, monkeypatch):
    samples, read = write(tmp_path / 'a', count=40, size=400), []
    monkeypatch.setattr(content, 'READ_WHOLE', 1000)
    monkeypatch.setattr(content, 'READ_FILES', 5)
    digest = content._digest_blocks
    monkeypatch.setattr(
        content, '_digest_blocks', lambda *given: read.append(given) or digest(*given)
    )
    content_digest(samples)
    assert len(read) == 5


def test_pixels_in_memory_count_as_a_whole():
    pixels = np.zeros((40, 40, 3), np.uint8)  # too many to be shown in text
    other = pixels.copy()
    other[20, 20] = 1
    assert content_digest(Samples([dict(img=pixels)])) != content_digest(Samples([dict(img=other)]))


@pytest.mark.parametrize(
    'samples', [[1, 2], Samples([dict(img_path='s3://a/b.jpg')]), Samples([dict(img_path='none')])]
)
def test_without_local_files_nothing_is_known(samples):
    assert content_digest(samples) is None
