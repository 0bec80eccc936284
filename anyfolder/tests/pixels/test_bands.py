"""Images of several bands: which files are such images, and their values."""

import struct

import numpy as np
import pytest
from image_folders import save_bands
from PIL import Image
from rejection import rejects

from anyfolder.pixels.bands import as_photograph, check_bands, multiband_shape, read_bands
from anyfolder.pixels.image_files import is_image
from anyfolder.pixels.image_headers import displayed_size
from anyfolder.pixels.images import decode, read_image


def values(bands: int, dtype: type = np.uint16) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 200, (10, 12, bands)).astype(dtype)


@pytest.mark.parametrize('dtype', [np.uint8, np.uint16, np.int16, np.float32])
@pytest.mark.parametrize('bands', [2, 4, 6, 13])
@pytest.mark.parametrize(
    'options',
    [
        dict(),
        dict(tile=(16, 16), compression='zlib'),
        dict(bigtiff=True),
        dict(byteorder='>'),
        dict(planarconfig='separate'),
    ],
    ids=str,
)
def test_tiffs_are_read_as_they_were_written(tmp_path, options, bands, dtype):
    wanted, path = values(bands, dtype), tmp_path / 'a.tif'
    written = wanted
    if 'planarconfig' in options:  # one band after another
        written = np.ascontiguousarray(wanted.transpose(2, 0, 1))
    save_bands(path, written, **options)
    assert multiband_shape(path) == wanted.shape
    assert displayed_size(path) == (12, 10)
    found = read_bands(path.read_bytes(), bands)
    assert found.dtype == np.float32
    assert np.array_equal(found, wanted)
    assert np.array_equal(read_image(path), wanted)


def test_gray_pages_of_one_size_are_bands(tmp_path):
    tifffile, path, wanted = pytest.importorskip('tifffile'), tmp_path / 'a.tif', values(6)
    tifffile.imwrite(path, np.ascontiguousarray(wanted.transpose(2, 0, 1)))
    assert multiband_shape(path) == wanted.shape
    assert np.array_equal(read_bands(path), wanted)
    with tifffile.TiffWriter(path) as tiff:  # an image with an overview
        tiff.write(wanted[..., 0])
        tiff.write(wanted[::2, ::2, 0])
    assert multiband_shape(path) is None


def test_alpha_is_not_a_band(tmp_path):
    path, wanted = tmp_path / 'a.tif', values(5)
    colors = dict(photometric='rgb', planarconfig='contig')
    save_bands(path, wanted, **colors, extrasamples=['unassalpha', 'unspecified'])
    assert np.array_equal(read_bands(path), wanted[..., [0, 1, 2, 4]])
    save_bands(path, wanted[..., :4], **colors, extrasamples=['unassalpha'])
    assert multiband_shape(path) is None
    save_bands(path, wanted[..., :4], **colors, extrasamples=['unspecified'])  # near infrared
    assert multiband_shape(path) == (10, 12, 4)


def test_arrays_have_their_bands_first_or_last(tmp_path):
    wanted, path = values(6), tmp_path / 'a.npy'
    for array in (wanted, wanted.transpose(2, 0, 1)):
        np.save(path, array)
        assert multiband_shape(path) == (10, 12, 6)
        assert np.array_equal(read_bands(path), wanted)
    assert is_image(path)
    for other in (values(6)[0], values(6).astype(object), np.zeros((0, 4, 6))):
        np.save(path, other)
        assert not is_image(path)  # features, objects, and an array without pixels


def test_photographs_have_no_bands(tmp_path):
    modes = {'a.png': 'RGB', 'a.tif': 'RGB', 'gray.tif': 'L', 'cmyk.tif': 'CMYK'}
    for name, mode in modes.items():
        Image.new('RGB', (12, 10)).convert(mode).save(tmp_path / name)
        assert multiband_shape(tmp_path / name) is None
        with pytest.raises(ValueError, match='it is an image, and not 6 bands'):
            read_bands(tmp_path / name, 6)


def test_wrong_numbers_of_bands_and_unreadable_values_raise(tmp_path):
    path = tmp_path / 'a.npy'
    np.save(path, values(6))
    with pytest.raises(ValueError, match='it has 6 bands, and not 4 bands'):
        read_bands(path, 4)
    with pytest.raises(ValueError, match='it has 6 bands; set bands=6 to read them'):
        decode(path.read_bytes())
    np.save(path, np.full((4, 5, 2), np.nan))
    with rejects(r"a\.npy' cannot be read \(it has values that are not"):
        read_image(path)
    with rejects("'a' has 6 bands or colors, but the model takes 3"):
        check_bands(values(6), 3, 'a')
    path.write_bytes(path.read_bytes()[:-8])
    with rejects('cannot be read'):
        read_image(path)


@pytest.mark.parametrize('bands', [1, 2, 3, 6])
def test_a_picture_shows_the_first_bands(bands):
    ramp = np.linspace(1000, 3000, 120).reshape(10, 12, 1).repeat(bands, axis=2)
    ramp[..., 3:] = 0
    picture = as_photograph(ramp)
    assert picture.shape == (10, 12, 3)
    assert picture.dtype == np.uint8
    assert (picture.min(), picture.max()) == (0, 255)
    assert np.array_equal(as_photograph(picture), picture)


def test_tiff_that_states_as_many_extras_as_samples_has_no_bands():
    tags = {256: 12, 257: 10, 262: 1, 277: 1, 338: 1}  # size, gray, a sample, and it is alpha
    entries = b''.join(struct.pack('<HHIHH', tag, 3, 1, value, 0) for tag, value in tags.items())
    content = b'II*\0' + struct.pack('<IH', 8, len(tags)) + entries + bytes(4)
    assert multiband_shape(content) is None
