"""Folders of images and masks."""

import cv2
import numpy as np
import pytest
from image_folders import write_masks

from vit_plugin.data.masks import read_mask_folder
from vit_plugin.errors import ConfigError


def test_pairs_classes_and_what_is_held_out(tmp_path):
    found = read_mask_folder(write_masks(tmp_path / 'one'))
    assert found.classes == ('class 0', 'class 1', 'class 2')
    assert (len(found.train), len(found.val), found.held_out, found.suffix) == (5, 1, True, '.png')
    assert {*found.train, *found.val} == {str(i) for i in range(6)}
    assert read_mask_folder(tmp_path / 'one') == found
    (tmp_path / 'one/classes.txt').write_text('ground\nsquare\nbar\n')
    assert read_mask_folder(tmp_path / 'one').classes == ('ground', 'square', 'bar')


def test_a_folder_to_validate(tmp_path):
    for part in ('train', 'val'):
        write_masks(tmp_path / part, 2)
        for name in ('images', 'masks'):
            (tmp_path / name).mkdir(exist_ok=True)
            (tmp_path / part / name).rename(tmp_path / name / part)
    found = read_mask_folder(tmp_path)
    assert (found.train, found.val, found.held_out) == (['train/0', 'train/1'], ['val/0', 'val/1'], False)


def spoil_size(folder):
    cv2.imwrite(str(folder / 'masks/0.png'), np.zeros((3, 4), np.uint8))


def spoil_channels(folder):
    cv2.imwrite(str(folder / 'masks/0.png'), np.zeros((48, 64, 3), np.uint8))


@pytest.mark.parametrize(('spoil', 'words'), [
    (lambda folder: (folder / 'masks/3.png').unlink(), 'has no mask .*3.png'),
    (lambda folder: (folder / 'images/3.png').rename(folder / 'images/3.jpg'), 'must have one suffix'),
    (lambda folder: (folder / 'masks').rename(folder / 'other'), "a folder 'masks'"),
    (lambda folder: (folder / 'classes.txt').write_text('a\nb\n'), 'has the class 2, and .* has 2 names'),
    (lambda folder: (folder / 'masks/0.png').write_text('no'), 'cannot be read'),
    (spoil_size, r'has \(4, 3\) pixels, and its image \(64, 48\)'),
    (spoil_channels, 'one channel of 8 bits'),
])
def test_what_does_not_fit_is_one_sentence(tmp_path, spoil, words):
    spoil(write_masks(tmp_path))
    with pytest.raises(ConfigError, match=words):
        read_mask_folder(tmp_path)
