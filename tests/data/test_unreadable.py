"""What counts as unreadable, and what takes its place."""

import errno
import threading

import cv2
import numpy as np
import pytest
from mmcv.transforms import LoadImageFromFile
from mmengine.dataset import BaseDataset
from rejection import rejects

from vit_plugin.data.images import LoadImage
from vit_plugin.data.seeded import PositionedIndex, Seeded
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
def test_whatever_a_loader_raises_is_unreadable(tmp_path, load, content):
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
    ('error', 'counts'),
    [
        (OSError(errno.EIO, 'Input/output error', 'a.jpg'), True),
        (FileNotFoundError('a.jpg'), True),
        (OSError(errno.EMFILE, 'Too many open files', 'a.jpg'), False),
        (MemoryError(), False),
        (KeyError('img'), False),
        (ConfigError('wrong'), False),
    ],
)
def test_other_errors(error, counts):
    assert bool(unreadable_file(raised(fail, error))) == counts


class Folder(BaseDataset):
    """Ten files, of which some are damaged."""

    def __init__(self, folder, damaged) -> None:
        self._folder = folder
        for i in range(10):
            cv2.imwrite(str(folder / f'{i}.png'), np.full((4, 4, 3), i, np.uint8))
        for i in damaged:
            (folder / f'{i}.png').write_bytes(b'no image')
        super().__init__(pipeline=[LoadImageFromFile()])

    def load_data_list(self) -> list[dict]:
        return [dict(img_path=str(self._folder / f'{i}.png')) for i in range(10)]


def test_another_sample_takes_the_place_and_it_depends_on_the_position_alone(tmp_path):
    (tmp_path / 'images').mkdir()
    bad = UnreadableList(tmp_path / 'unreadable.txt')
    data = Seeded(Folder(tmp_path / 'images', [3, 4]), 0, bad)
    found = [data[PositionedIndex(3, position)]['img'].max() for position in range(30)]
    assert found == [data[PositionedIndex(3, position)]['img'].max() for position in range(30)]
    assert len(set(found)) > 4
    assert not {3, 4} & set(found)
    assert {bad.path for bad in bad.read()} == {str(tmp_path / f'images/{i}.png') for i in (3, 4)}
    # None twice.
    assert len(bad.read()) == 30 + sum(entry.path.endswith('4.png') for entry in bad.read())
    assert data[PositionedIndex(5, 0)]['img'].max() == 5
    with pytest.raises(AssertionError, match='failed to load'):
        data[3]  # for who asks without a position


def test_without_a_list_it_is_an_error(tmp_path):
    with pytest.raises(AssertionError, match='failed to load'):
        Seeded(Folder(tmp_path, [3]), 0)[PositionedIndex(3, 0)]


def test_a_data_set_of_unreadable_files_is_one_sentence(tmp_path):
    (tmp_path / 'images').mkdir()
    data = Seeded(
        Folder(tmp_path / 'images', range(10)), 0, UnreadableList(tmp_path / 'unreadable.txt')
    )
    with rejects('10 samples in a row cannot be read, the last one .*png.*look at'):
        data[PositionedIndex(3, 0)]


def test_several_writers_leave_whole_lines(tmp_path):
    bad = UnreadableList(tmp_path / 'folder/unreadable.txt')
    threads = [
        threading.Thread(
            target=lambda i=i: [
                bad.add(UnreadableFile(i * 100 + k, f'{i}\t{k}\n', 'x' * 99)) for k in range(50)
            ]
        )
        for i in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {entry.position for entry in bad.read()} == {
        i * 100 + k for i in range(4) for k in range(50)
    }
    assert all(entry.reason == 'x' * 99 for entry in bad.read())
    with open(bad.path, 'a') as file:
        file.write('torn')
    assert len(bad.read()) == 200
