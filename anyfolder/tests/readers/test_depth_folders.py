"""Depth maps belong to images by their names, in the layouts of public data."""

import math
import re

import numpy as np
import pytest
from image_folders import write_depth
from listings import notes_of
from PIL import Image
from rejection import rejects

from anyfolder.readers.class_folders import read_class_folders
from anyfolder.readers.depth_folders import read_depth_folder
from anyfolder.readers.image_tree import Tree

SIZE = (16, 12)


def write(folder, image, depth, value=2000, size=SIZE):
    """An image, and a map of one value in millimeters, whose upper half is unknown."""
    rng = np.random.default_rng(len(image) + value)
    pixels = rng.integers(0, 256, (*SIZE[::-1], 3), dtype=np.uint8)
    for name in (image, depth):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(folder / image)
    values = np.full(size[::-1], value)
    values[: size[1] // 2] = 0
    if depth.endswith('.png'):
        Image.fromarray(values.astype(np.uint16)).save(folder / depth)
    else:
        np.save(folder / depth, values.astype(np.float32) / 1000)


DRIVE = '2011_09_26_drive_000{i}_sync'
LAYOUTS = {  # the names of image and map, and the depth in meters that a value of 2000 means
    'folders': ('{split}/images/{i}.jpg', '{split}/depth/{i}.png', 2.0),
    'MMSegmentation': ('images/{split}/bath_{i}.jpg', 'annotations/{split}/bath_{i}.png', 2.0),
    'NYU': ('{split}/bath/rgb_0000{i}.jpg', '{split}/bath/sync_depth_0000{i}.png', 2.0),
    'KITTI': (
        f'2011_09_26/{DRIVE}/image_02/data/000000000{{j}}.png',
        f'{{split}}/{DRIVE}/proj_depth/groundtruth/image_02/000000000{{j}}.png',
        2000 / 256,
    ),
    'KITTI, selected': (
        '{split}/image/drive_image_000{i}_image_02.png',
        '{split}/groundtruth_depth/drive_groundtruth_depth_000{i}_image_02.png',
        2000 / 256,
    ),
    'side by side': ('{split}/{i}.jpg', '{split}/{i}.npy', 2.0),
    'with a word': ('{split}/{i}.jpg', '{split}/{i}_depth.npy', 2.0),
}


@pytest.mark.parametrize('layout', LAYOUTS)
def test_layouts_of_public_data_are_read(layout, tmp_path):
    image, depth, meters = LAYOUTS[layout]
    for split, numbers in (('train', range(4)), ('val', range(4, 6))):
        for i in numbers:
            names = (name.format(split=split, i=i, j=i % 2) for name in (image, depth))
            write(tmp_path, *names, value=2000)
    listing, depths = read_depth_folder(Tree(tmp_path))
    assert [len(part) for part in listing.parts.values()] == [4, 2, 0]
    assert (depths.nearest, depths.farthest) == pytest.approx((meters, meters))
    for record in [*listing.train, *listing.val]:
        if 'image_02' not in str(record.path):  # in KITTI, the last digit is not that of the image
            digit, digit_of_map = (
                re.findall(r'\d', str(path))[-1] for path in (record.path, record.mask)
            )
            assert digit == digit_of_map


def test_invalid_depth_folders_raise(tmp_path):
    with rejects('must have images, and depth maps of the same names in'):
        read_depth_folder(Tree(tmp_path))
    for i in range(4):
        write(tmp_path, f'images/{i}.jpg', f'depth/{i}.png', value=65000)
    with rejects('the median depth is 65,000 m'):
        read_depth_folder(Tree(tmp_path), scale=1.0)
    write(tmp_path, 'images/4.jpg', 'depth/4.png', size=(8, 6))
    with rejects('another size than their image'):
        read_depth_folder(Tree(tmp_path))
    listing, _ = read_depth_folder(Tree(tmp_path), skip_invalid=True)
    assert sum(map(len, listing.parts.values())) == 4
    write(tmp_path, 'images/5.jpg', 'depth/5.npy')
    with rejects('whose units differ'):
        read_depth_folder(Tree(tmp_path), skip_invalid=True)


@pytest.mark.parametrize('scale', [0, -0.001, math.inf, math.nan])
def test_scales_that_are_not_positive_raise(tmp_path, scale):
    for i in range(4):
        write(tmp_path, f'images/{i}.jpg', f'depth/{i}.png')
    with rejects('depth_scale=.* is not a number above 0'):
        read_depth_folder(Tree(tmp_path), scale)


def test_images_without_a_map_are_reported(tmp_path):
    for i in range(3):
        write(tmp_path, f'images/{i}.jpg', f'depth/{i}.png')
    (tmp_path / 'depth/2.png').unlink()
    listing, _ = read_depth_folder(Tree(tmp_path))
    assert 'images left out, since they have no depth map' in listing.findings.warnings


def test_two_maps_of_an_image_raise_unless_one_is_8_bit(tmp_path):
    write_depth(tmp_path)
    (tmp_path / 'depth_vis').mkdir()
    for path in (tmp_path / 'depth').iterdir():
        other = np.asarray(Image.open(path)) + np.uint16(7)
        Image.fromarray(other).save(tmp_path / 'depth_vis' / path.name)
    with rejects(r'two label files \(6, the first is .*depth/0.png and .*depth_vis/0.png\)'):
        read_depth_folder(Tree(tmp_path))
    for path in (tmp_path / 'depth_vis').iterdir():
        Image.fromarray((np.asarray(Image.open(path)) // 13).astype(np.uint8)).save(path)
    listing, _ = read_depth_folder(Tree(tmp_path))
    assert ('8-bit pictures of depth left out, next to a depth map', 6) in notes_of(listing)
    assert {record.mask.parent.name for record in listing.train} == {'depth'}


def test_images_and_depth_maps_raise_for_classification(tmp_path):
    write_depth(tmp_path)
    with rejects('has images and depth maps; give task=.depth'):
        read_class_folders(Tree(tmp_path))
