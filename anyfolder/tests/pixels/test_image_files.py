"""The images among given files and folders."""

import cv2
import numpy as np
from rejection import rejects

from anyfolder.pixels.image_files import image_files


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
