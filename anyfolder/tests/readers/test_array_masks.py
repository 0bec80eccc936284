"""Masks as arrays raise an error with the code that writes them as images."""

import subprocess
import sys

import numpy as np
import pytest
from public_maps import mask_of
from public_scene import Scene

import anyfolder
from anyfolder.readers.array_masks import array_masks
from anyfolder.readers.image_tree import Tree


def write_arrays(folder, values: np.ndarray, subfolder: str = 'masks', first: int = 0) -> None:
    """Images 0 to 5, and as many arrays in the folder ``subfolder``, numbered from ``first``."""
    scene = Scene(folder)
    for i in range(6):
        scene.images(f'images/{i}.jpg')
        scene.array(f'{subfolder}/{i + first}.npy', values)


@pytest.mark.parametrize('task', [None, 'segmentation'])
@pytest.mark.parametrize('dtype', [np.uint8, np.int64])
def test_code_in_the_error_writes_readable_masks(tmp_path, task, dtype):
    write_arrays(tmp_path, mask_of(0, 1, 2).astype(dtype))
    with pytest.raises(anyfolder.InputError, match='is a mask as an array') as raised:
        anyfolder.read(tmp_path, task)
    code = str(raised.value).split('`')[1]
    subprocess.run([sys.executable, '-c', code], cwd=tmp_path, check=True)
    data = anyfolder.read(tmp_path, 'segmentation')
    image = data.splits['train'][0]
    assert np.array_equal(data.class_map(image), mask_of(0, 1, 2))


@pytest.mark.parametrize(
    ('values', 'subfolder', 'first'),
    [
        (mask_of(0, 1).astype(np.float32), 'masks', 0),
        (mask_of(0, 1), 'features', 0),
        (mask_of(0, 1), 'masks', 4),  # only two have the names of images
        (np.zeros((3, 30, 40), np.uint8), 'masks', 0),
    ],
)
def test_other_arrays_are_not_masks(tmp_path, values, subfolder, first):
    write_arrays(tmp_path, values, subfolder, first)
    assert array_masks(Tree(tmp_path)) == []
