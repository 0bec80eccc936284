"""Which errors mean that a file is unreadable, and which sample replaces it."""

import errno
import threading

import cv2
import numpy as np
import pytest
from mmcv.transforms import LoadImageFromFile
from mmengine import fileio
from mmengine.dataset import BaseDataset
from rejection import rejects

from vit_plugin.data.images import LoadImage
from vit_plugin.data.seeded import PositionedIndex, SeededDataset
from vit_plugin.data.unreadable import UnreadableFile, UnreadableList, unreadable_file
from vit_plugin.errors import ConfigError


def raised(function, *args) -> Exception:
    with pytest.raises(Exception) as error:  # noqa: PT011
        function(*args)
    return error.value


@pytest.mark.parametrize(
    'load', [LoadImage, LoadImageFromFile, lambda: LoadImageFromFile(imdecode_backend='pillow')]
)
@pytest.mark.parametrize('content', [b'', b'a text', None])
def test_errors_of_loaders_mean_unreadable(tmp_path, load, content):
    path = tmp_path / 'bad.jpg'
    if content is not None:
        path.write_bytes(content)
    data = BaseDataset(lazy_init=True)
    data.get_data_info = lambda index: dict(img_path=str(path))
    name, reason = unreadable_file(raised(load(), data.get_data_info(0)), data)
    assert name == str(path)
    assert reason


def fail(error: Exception) -> None:
    raise error


@pytest.mark.parametrize(
    ('error', 'is_unreadable'),
    [
        (OSError(errno.EIO, 'Input/output error', 'a.jpg'), True),
        (FileNotFoundError('a.jpg'), True),
        (OSError(errno.EMFILE, 'Too many open files', 'a.jpg'), False),
        (MemoryError(), False),
        (KeyError('img'), False),
        (ConfigError('wrong'), False),
    ],
)
def test_errors_of_files_mean_unreadable_and_others_do_not(error, is_unreadable):
    assert bool(unreadable_file(raised(fail, error))) == is_unreadable


def test_errors_of_the_machine_pass_through_our_reader(tmp_path, monkeypatch):
    def fail_to_open(*_, **__):
        raise OSError(errno.EMFILE, 'Too many open files', 'a.jpg')

    monkeypatch.setattr(fileio, 'get', fail_to_open)
    error = raised(LoadImage().load, str(tmp_path / 'a.jpg'))
    assert unreadable_file(error) is None


class Folder(BaseDataset):
    """Ten images, each of the value of its number; some are damaged."""

    def __init__(self, folder, damaged) -> None:
        self._folder = folder
        for i in range(10):
            cv2.imwrite(str(folder / f'{i}.png'), np.full((4, 4, 3), i, np.uint8))
        for i in damaged:
            (folder / f'{i}.png').write_bytes(b'no image')
        super().__init__(pipeline=[LoadImageFromFile()])

    def load_data_list(self) -> list[dict]:
        return [dict(img_path=str(self._folder / f'{i}.png')) for i in range(10)]


def test_the_replacement_of_a_sample_depends_only_on_its_position(tmp_path):
    (tmp_path / 'images').mkdir()
    unreadable = UnreadableList(tmp_path / 'unreadable.txt')
    data = SeededDataset(Folder(tmp_path / 'images', [3, 4]), 0, unreadable)
    values = [data[PositionedIndex(3, position)]['img'].max() for position in range(30)]
    assert values == [data[PositionedIndex(3, position)]['img'].max() for position in range(30)]
    assert len(set(values)) > 4
    assert not {3, 4} & set(values)
    paths = [entry.path for entry in unreadable.read()]
    assert {*paths} == {str(tmp_path / f'images/{i}.png') for i in (3, 4)}
    # One entry for each position, although each was read twice; and those of replacements.
    assert len(paths) == 30 + sum(path.endswith('4.png') for path in paths)
    assert data[PositionedIndex(5, 0)]['img'].max() == 5
    with pytest.raises(AssertionError, match='failed to load'):
        data[3]  # a sample without a position is not replaced


def test_unreadable_samples_without_a_list_raise(tmp_path):
    with pytest.raises(AssertionError, match='failed to load'):
        SeededDataset(Folder(tmp_path, [3]), 0)[PositionedIndex(3, 0)]


def test_many_unreadable_samples_in_a_row_raise(tmp_path):
    (tmp_path / 'images').mkdir()
    data = SeededDataset(
        Folder(tmp_path / 'images', range(10)), 0, UnreadableList(tmp_path / 'unreadable.txt')
    )
    with rejects('10 samples in a row cannot be read, the last one .*png.*look at'):
        data[PositionedIndex(3, 0)]


def test_concurrent_writers_write_complete_lines(tmp_path):
    unreadable = UnreadableList(tmp_path / 'folder/unreadable.txt')

    def write(i: int) -> None:
        for k in range(50):
            unreadable.add(UnreadableFile(i * 100 + k, f'{i}\t{k}\n', 'x' * 99))

    threads = [threading.Thread(target=write, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {entry.position for entry in unreadable.read()} == {
        i * 100 + k for i in range(4) for k in range(50)
    }
    assert all(entry.reason == 'x' * 99 for entry in unreadable.read())
    with open(unreadable.path, 'a') as file:
        file.write('torn')  # an incomplete line is ignored
    assert len(unreadable.read()) == 200
