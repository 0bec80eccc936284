"""Slices of volumes by their names."""

import numpy as np
import pytest
from rejection import rejects

from anyfolder.pixels.image_files import image_files
from anyfolder.pixels.images import read_image
from anyfolder.pixels.volume_slices import file_and_number, read_slice, slices_of


def test_names_of_slices():
    assert file_and_number('a/case1.npy.h5[012]') == ('a/case1.npy.h5', 12)
    assert file_and_number('a/case1_slice000.npz') == ('a/case1_slice000.npz', None)
    assert file_and_number('photo[1].png') == ('photo[1].png', None)
    assert slices_of('photo.png') == ['photo.png']


def test_folder_of_slices_is_read(tmp_path):
    image = np.random.default_rng(0).random((4, 6))
    np.savez(tmp_path / 'b.npz', image=image, label=image)
    np.savez(tmp_path / 'embeddings.npz', names=[''], features=image)
    (tmp_path / 'c.npz').write_text('no archive')
    assert image_files([str(tmp_path)]) == [str(tmp_path / 'b.npz')]
    np.testing.assert_array_equal(read_image(tmp_path / 'b.npz')[..., 0], image)
    with rejects('cannot be read'):
        read_image(tmp_path / 'embeddings.npz')
    with pytest.raises(ValueError, match='it has no slices'):
        read_slice(tmp_path / 'photo.png', None)


def test_a_volume_is_its_slices_in_order(tmp_path):
    h5py = pytest.importorskip('h5py')
    volume = np.random.default_rng(0).random((11, 4, 6))
    path = tmp_path / 'case1.npy.h5'
    with h5py.File(path, 'w') as file:
        file['image'] = volume
    names = image_files([str(tmp_path)])
    assert names == [f'{path}[{i:02}]' for i in range(11)]
    assert image_files([f'{path}[3]']) == [f'{path}[3]']
    np.testing.assert_array_equal([read_image(name)[..., 0] for name in names], volume)
    with rejects(r'case1\.npy\.h5\[11\]. cannot be read'):
        read_image(f'{path}[11]')


def test_a_volume_without_slices_raises(tmp_path):
    h5py = pytest.importorskip('h5py')
    path = tmp_path / 'case1.npy.h5'
    with h5py.File(path, 'w') as file:
        file['image'] = np.zeros((0, 4, 6))
    with rejects(r"case1\.npy\.h5' has no slices; leave it out"):
        image_files([str(path)])
