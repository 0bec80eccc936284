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
    """Images 0 to 5, and six arrays in the folder ``subfolder``, numbered from ``first`` on."""
    scene = Scene(folder)
    for i in range(6):
        scene.images(f'images/{i}.jpg')
        scene.array(f'{subfolder}/{i + first}.npy', values)


def run_code_in_error(folder, task: str | None = 'segmentation') -> None:
    """Read a folder, which raises, and run the code in the message there."""
    with pytest.raises(anyfolder.InputError, match='is a mask as an array') as raised:
        anyfolder.read(folder, task)
    code = str(raised.value).split('`')[1]
    subprocess.run([sys.executable, '-c', code], cwd=folder, check=True)


@pytest.mark.parametrize('task', [None, 'segmentation'])
@pytest.mark.parametrize('dtype', [np.uint8, np.int64])
def test_code_in_the_error_writes_readable_masks(tmp_path, task, dtype):
    write_arrays(tmp_path, mask_of(0, 1, 2).astype(dtype))
    run_code_in_error(tmp_path, task)
    data = anyfolder.read(tmp_path, 'segmentation')
    image = data.splits['train'][0]
    assert np.array_equal(data.class_map(image), mask_of(0, 1, 2))


def test_code_in_the_error_converts_the_masks_of_all_splits_and_nothing_else(tmp_path):
    scene = Scene(tmp_path)
    for split in ('train', 'val'):
        for i in range(4):
            scene.images(f'images/{split}/{i}.jpg')
            scene.array(f'images/{split}/{i}.npy', mask_of(5, 6))  # a cache of its pixels
            scene.array(f'masks/{split}/{i}.npy', mask_of(0, 1))
    run_code_in_error(tmp_path)
    data = anyfolder.read(tmp_path, 'segmentation')
    assert [len(images) for images in data.splits.values()] == [4, 4, 0]
    assert not [*tmp_path.rglob('images/*/*.png')]


@pytest.mark.parametrize('dtype', [np.int8, np.int64])
def test_negative_numbers_become_pixels_without_a_class(tmp_path, dtype):
    write_arrays(tmp_path, mask_of(0, 1, 9).astype(dtype) - 10 * (mask_of(0, 1, 9) == 9))
    run_code_in_error(tmp_path)
    data = anyfolder.read(tmp_path, 'segmentation')
    assert len(data.classes) == 2
    assert np.array_equal(data.class_map(data.splits['train'][0]), mask_of(0, 1, 255))


def test_suffix_may_be_in_upper_case(tmp_path):
    write_arrays(tmp_path, mask_of(0, 1))
    for file in [*tmp_path.rglob('*.npy')]:
        file.rename(file.with_suffix('.NPY'))
    run_code_in_error(tmp_path)
    assert len([*tmp_path.rglob('masks/*.png')]) == 6


def test_code_stops_at_numbers_that_do_not_fit_16_bits(tmp_path):
    write_arrays(tmp_path, mask_of(0, 1).astype(np.int32) * 70_000)
    with pytest.raises(subprocess.CalledProcessError):
        run_code_in_error(tmp_path)
    assert not [*tmp_path.rglob('masks/*.png')]


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
