"""Crops at reduced JPEG sizes equal MMPretrain's random resized crops."""

import cv2
import numpy as np
import pytest
from mmengine.registry import TRANSFORMS
from mmpretrain.datasets.transforms import RandomResizedCrop
from PIL import Image
from rejection import rejects

from anyfolder.pixels.image_headers import displayed_size
from vit_plugin.data import LoadRandomResizedCrop, load_image


@pytest.fixture
def path(tmp_path) -> str:
    """A JPEG whose red grows with x and green with y, so that colors show a crop's position."""
    height, width = 384, 512
    y, x = np.mgrid[:height, :width]
    image = np.stack((np.full_like(x, 99), y * 255 // height, x * 255 // width), axis=-1).astype(
        np.uint8
    )
    cv2.imwrite(str(tmp_path / 'image.jpg'), image, [cv2.IMWRITE_JPEG_QUALITY, 98])
    return str(tmp_path / 'image.jpg')


@pytest.mark.parametrize('scale', [224, 100, 40, (32, 64)])
def test_crops_equal_mmpretrains_at_any_decoded_size(path, scale):
    ours = TRANSFORMS.build(dict(type='vit_plugin.LoadRandomResizedCrop', scale=scale))
    theirs = RandomResizedCrop(scale)
    for seed in range(10):
        np.random.seed(seed)
        result = ours(dict(img_path=path))
        np.random.seed(seed)
        expected = theirs(dict(img=cv2.imread(path)))['img']
        assert result['ori_shape'] == (384, 512)
        assert result['img'].shape == expected.shape
        # The coarsest decoding is 1/8, where a shift by half a pixel changes colors by 2.
        assert np.abs(result['img'].astype(int) - expected).mean() < 2.5


@pytest.mark.parametrize(
    ('scale', 'flag'),
    [
        (384, cv2.IMREAD_COLOR),
        (192, cv2.IMREAD_REDUCED_COLOR_2),
        (100, cv2.IMREAD_REDUCED_COLOR_2),
        (48, cv2.IMREAD_REDUCED_COLOR_8),
    ],
)
def test_images_are_decoded_no_larger_than_needed(path, scale, flag, monkeypatch):
    flags = []
    decode = cv2.imdecode

    def recorded(content, flag):
        flags.append(flag)
        return decode(content, flag)

    monkeypatch.setattr(cv2, 'imdecode', recorded)
    LoadRandomResizedCrop(scale, crop_ratio_range=(1.0, 1.0), aspect_ratio_range=(4 / 3, 4 / 3))(
        dict(img_path=path)
    )
    assert flags == [flag]


def test_areas_and_ratios_are_distributed_as_in_mmpretrain(path, monkeypatch):
    """The sizes of crops are recorded instead of resizing them."""
    crops = []

    def recorded(image, *args):
        crops.append(image.shape[:2])
        return image

    monkeypatch.setattr(load_image, 'resize_image', recorded)
    ours, theirs = LoadRandomResizedCrop(224), RandomResizedCrop(224)
    np.random.seed(1)
    for _ in range(300):
        ours(dict(img_path=path))
    boxes = [theirs.rand_crop_params(np.empty((384, 512, 3), np.uint8))[2:] for _ in range(300)]
    for feature in (lambda size: size[0] * size[1] / (384 * 512), lambda size: size[1] / size[0]):
        quantiles = [
            np.quantile([feature(size) for size in sizes], (0.1, 0.5, 0.9))
            for sizes in (crops, boxes)
        ]
        assert quantiles[0] == pytest.approx(quantiles[1], rel=0.2)


def test_rotated_photographs_have_their_displayed_size(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6  # orientation: rotated by 90 degrees
    path = tmp_path / 'side.jpg'
    Image.new('RGB', (40, 20)).save(path, exif=exif)
    assert displayed_size(path)[::-1] == (40, 20)
    assert cv2.imread(path).shape[:2] == (40, 20)
    assert LoadRandomResizedCrop(8)(dict(img_path=str(path)))['ori_shape'] == (40, 20)


@pytest.mark.parametrize('field', ['crop_ratio_range', 'aspect_ratio_range'])
def test_descending_ranges_raise(field):
    with rejects(rf'{field}=\(0.9, 0.3\) must be \(min, max\)'):
        LoadRandomResizedCrop(8, **{field: (0.9, 0.3)})


def test_an_interpolation_that_pillow_lacks_raises():
    LoadRandomResizedCrop(8, interpolation='area')
    LoadRandomResizedCrop(8, interpolation='lanczos', backend='pillow')
    with rejects("Pillow has no interpolation='area'; take another one, or backend='cv2'"):
        LoadRandomResizedCrop(8, interpolation='area', backend='pillow')
