"""The images among given files and folders."""

from pathlib import Path

import cv2
import numpy as np
from rejection import rejects

from anyfolder.pixels.image_files import image_files, walk_files


def test_folders_are_replaced_by_their_images_in_order(tmp_path):
    photo = str(tmp_path / 'photo.png')
    cv2.imwrite(photo, np.zeros((4, 6, 3), dtype=np.uint8))
    folder = tmp_path / 'folder'
    folder.mkdir()
    (folder / 'below').mkdir()
    for name in ('b.JPG', 'a.png', 'notes.txt', 'below/c.png', '._a.png', 'Thumbs.db'):
        (folder / name).touch()
    names = ('a.png', 'b.JPG', 'below/c.png')
    assert image_files([photo, str(folder)]) == [photo, *(str(folder / name) for name in names)]
    with rejects("There is no image 'none'"):
        image_files(['none'])


def test_links_to_themselves_are_no_files(tmp_path):
    """Only one with the suffix of an image counts, as any broken link does."""
    (tmp_path / 'a.txt').touch()
    for name in ('loop', 'loop.txt', 'loop.png'):
        (tmp_path / name).symlink_to(tmp_path / name)
    assert [path.name for path in walk_files(tmp_path)] == ['a.txt', 'loop.png']


def test_folder_above_the_working_folder_is_searched(tmp_path, monkeypatch):
    (tmp_path / 'a/b').mkdir(parents=True)
    for name in ('a/1.png', 'a/b/2.png'):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path / 'a/b')
    assert [path.as_posix() for path in walk_files(Path('..'))] == ['../1.png', '../b/2.png']
