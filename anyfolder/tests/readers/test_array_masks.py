"""Masks as arrays are refused with the code that writes them as images."""

import subprocess
import sys

import numpy as np
import pytest
from public_maps import mask_of
from public_scene import Scene

import anyfolder
from anyfolder.readers.array_masks import array_masks
from anyfolder.readers.image_tree import Tree


def scene_of(folder, values: np.ndarray, place: str = 'masks', first: int = 0) -> Scene:
    scene = Scene(folder)
    for i in range(6):
        scene.images(f'images/{i}.jpg')
        scene.array(f'{place}/{i + first}.npy', values)
    return scene


@pytest.mark.parametrize('task', [None, 'segmentation'])
@pytest.mark.parametrize('dtype', [np.uint8, np.int64])
def test_the_code_of_the_sentence_makes_masks_that_are_read(tmp_path, task, dtype):
    scene_of(tmp_path, mask_of(0, 1, 2).astype(dtype))
    with pytest.raises(anyfolder.InputError, match='is a mask as an array') as raised:
        anyfolder.read(tmp_path, task)
    code = str(raised.value).split('`')[1]
    subprocess.run([sys.executable, '-c', code], cwd=tmp_path, check=True)
    found = anyfolder.read(tmp_path, 'segmentation')
    image = found.splits['train'][0]
    assert np.array_equal(found.class_map(image), mask_of(0, 1, 2))


@pytest.mark.parametrize(
    ('values', 'place', 'first'),
    [
        (mask_of(0, 1).astype(np.float32), 'masks', 0),
        (mask_of(0, 1), 'features', 0),
        (mask_of(0, 1), 'masks', 4),  # two have the names of images
        (np.zeros((3, 30, 40), np.uint8), 'masks', 0),
    ],
)
def test_other_arrays_are_no_masks(tmp_path, values, place, first):
    scene_of(tmp_path, values, place, first)
    assert array_masks(Tree(tmp_path)) == []
