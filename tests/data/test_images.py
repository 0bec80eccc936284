"""Image files are read as they are displayed, or raise an error that names them."""

import os

import cv2
import numpy as np
import pytest
from mmengine.config import ConfigDict
from PIL import Image
from rejection import rejects

from benchmarks.image_kinds import saved, write
from benchmarks.images import READERS, outcome
from vit_plugin.data import LoadCachedImage, LoadImage
from vit_plugin.data.image_reader import use_our_image_reader


@pytest.fixture(scope='module')
def kinds(tmp_path_factory) -> list[tuple[str, bool]]:
    return list(write(tmp_path_factory.mktemp('images')))


@pytest.mark.filterwarnings('ignore')  # of Pillow, about an image of 60,000 x 60,000 pixels
@pytest.mark.parametrize('reader', [name for name in READERS if name != 'LoadImageFromFile'])
def test_every_kind_of_file_is_read_correctly_or_raises(kinds, reader):
    results = {path: outcome(READERS[reader], path, is_image) for path, is_image in kinds}
    assert results == {path: 'right' if is_image else 'one sentence' for path, is_image in kinds}


def test_cached_images_are_read_once_and_not_changed_by_callers(tmp_path):
    path = tmp_path / 'image.png'
    path.write_bytes(saved('PNG'))
    load = LoadCachedImage()
    first = load(dict(img_path=str(path)))['img']
    expected = first.copy()
    first[:] = 0
    cv2.imwrite(str(path), expected[:9, :9])
    cached_results = load(dict(img_path=str(path)))
    assert (cached_results['img'] == expected).all()
    assert cached_results['img_shape'] == cached_results['ori_shape'] == expected.shape[:2]


@pytest.mark.parametrize('reader', [LoadImage, LoadCachedImage])
def test_ignore_empty_returns_none_for_unreadable_files(tmp_path, reader):
    (tmp_path / 'bad.jpg').touch()
    assert reader(ignore_empty=True)(dict(img_path=str(tmp_path / 'bad.jpg'))) is None


def test_dtype_and_channels_follow_the_arguments(tmp_path):
    Image.new('RGB', (9, 5), (10, 20, 30)).save(tmp_path / 'x.png')
    results = LoadImage(to_float32=True, color_type='grayscale')(
        dict(img_path=str(tmp_path / 'x.png'), img_id=3)
    )
    assert results['img'].dtype == np.float32
    assert results['img'].shape == (5, 9)
    assert results['img_id'] == 3


def test_mmcvs_reader_does_not_name_empty_files(tmp_path):
    """The reason for our reader. If this fails, MMCV's reader will do."""
    from mmcv.transforms import LoadImageFromFile

    (tmp_path / 'empty.jpg').touch()
    with pytest.raises(cv2.error) as error:
        LoadImageFromFile()(dict(img_path=str(tmp_path / 'empty.jpg')))
    assert 'empty.jpg' not in str(error.value)
    with rejects('empty.jpg'):
        LoadImage()(dict(img_path=str(tmp_path / 'empty.jpg')))


@pytest.mark.parametrize(
    'options',
    [
        None,
        dict(backend='local'),
        dict(backend='petrel', enable_mc=False),
        {},
        dict(backend='lmdb', db_path='x', map_size=9),
    ],
)
def test_arguments_of_backends_are_accepted(options):
    assert LoadImage(backend_args=options).backend_args == options


@pytest.mark.parametrize(
    'options',
    [
        dict(backend='locl'),
        dict(backend='local', root='/x'),
        dict(enable_mcc=True),
        dict(backend=['local']),
        dict(backend='petrel', conf='x'),
    ],
)
@pytest.mark.parametrize('reader', [LoadImage, LoadCachedImage])
def test_arguments_that_no_backend_takes_raise_when_built(reader, options):
    with rejects(f"{reader.__name__}: backend_args=.* must be a dict with backend='local'"):
        reader(backend_args=options)


def test_pipes_raise_instead_of_blocking(tmp_path):
    os.mkfifo(tmp_path / 'pipe.png')
    with rejects('pipe.png.*not a regular file'):
        LoadImage().load(str(tmp_path / 'pipe.png'))


def test_all_pipelines_of_a_config_get_our_reader():
    load, other = dict(type='mmdet.LoadImageFromFile', to_float32=True), dict(type='PackInputs')
    cfg = ConfigDict(
        batch_size=2, dataset=dict(type='Concat', datasets=[dict(pipeline=(load, other))])
    )
    changed = use_our_image_reader(cfg)
    assert changed.dataset.datasets[0].pipeline == (
        dict(type='vit_plugin.LoadImage', to_float32=True),
        other,
    )
    assert cfg.dataset.datasets[0].pipeline[0].type == 'mmdet.LoadImageFromFile'
    # An argument that our reader does not have.
    unknown = [dict(type='LoadImageFromFile', file_client_args=dict(backend='disk'))]
    assert use_our_image_reader(unknown) == unknown


def test_a_window_reads_all_bits(tmp_path):
    """Images of 12 bits are stored as PNG of 16 bits with values from 0 to 4095."""
    values = np.arange(4096, dtype=np.uint16).reshape(64, 64)
    cv2.imwrite(str(tmp_path / 'x.png'), values)
    sample = dict(img_path=str(tmp_path / 'x.png'))
    assert LoadImage(color_type='grayscale')(sample)['img'].max() == 15  # without a window
    gray = LoadImage(window=(0, 4095), color_type='grayscale', to_float32=True)(sample)['img']
    assert (gray.dtype, gray.shape) == (np.float32, (64, 64))
    np.testing.assert_allclose(gray, values * (255 / 4095), rtol=1e-5)
    color = LoadImage(window=(1000, 2000))(sample)['img']
    assert (color.dtype, color.shape) == (np.uint8, (64, 64, 3))
    np.testing.assert_allclose(color[..., 1], ((values - 1000.0) * 0.255).clip(0, 255), atol=0.501)
    cached = LoadCachedImage(window=(0, 4095), color_type='grayscale', to_float32=True)
    assert (cached(sample)['img'] == gray).all()


@pytest.mark.parametrize(
    ('kwargs', 'words'),
    [
        (dict(window=(5, 5)), r'window=.*\(lower, upper\)'),
        (dict(window=(5,)), 'window'),
        (dict(window=(0, 9), imdecode_backend='pillow'), 'needs values of all bits'),
        (dict(window=(0, 9), bands=4), 'leave out one of them'),
        (dict(bands=4, color_type='grayscale'), 'bands are read as they are'),
        (dict(bands=4, imdecode_backend='pillow'), 'bands are read as they are'),
    ],
)
def test_invalid_windows_raise(kwargs, words):
    with rejects(words):
        LoadImage(**kwargs)


def test_a_window_for_avif_raises(tmp_path):
    path = tmp_path / 'x.avif'
    path.write_bytes(saved('AVIF'))
    with rejects('x.avif.*read with 8 bits only'):
        LoadImage(window=(0, 255))(dict(img_path=str(path)))
