"""Depth maps belong to images by their names, in the layouts of public data."""

import numpy as np
import pytest
from PIL import Image
from rejection import rejects

from anyfolder.readers.depth_folders import read_depth_folder
from anyfolder.readers.image_tree import Tree

SIZE = (16, 12)


def write(folder, image, depth, value=2000, size=SIZE):
    """An image, and a map whose upper half is not known."""
    random = np.random.default_rng(len(image) + value)
    pixels = random.integers(0, 256, (*SIZE[::-1], 3), dtype=np.uint8)
    for name in (image, depth):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(folder / image)
    values = np.full(size[::-1], value)
    values[: size[1] // 2] = 0
    if depth.endswith('.png'):
        Image.fromarray(values.astype(np.uint16)).save(folder / depth)
    else:
        np.save(folder / depth, values.astype(np.float32) / 1000)


DRIVE = '2011_09_26_drive_000{}_sync'
LAYOUTS = {  # the names of image and map, and the depth of a value of 2000
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
    'beside': ('{split}/{i}.jpg', '{split}/{i}.npy', 2.0),
    'with a word': ('{split}/{i}.jpg', '{split}/{i}_depth.npy', 2.0),
}


@pytest.mark.parametrize('layout', LAYOUTS)
def test_layouts(layout, tmp_path):
    image, depth, meters = LAYOUTS[layout]
    for split, numbers in (('train', range(4)), ('val', range(4, 6))):
        for i in numbers:
            names = (one.replace('{}', '{i}') for one in (image, depth))
            write(tmp_path, *(one.format(split=split, i=i, j=i % 2) for one in names), value=2000)
    listing, found = read_depth_folder(Tree(tmp_path))
    assert [len(part) for part in listing.parts.values()] == [4, 2, 0]
    assert (found.nearest, found.farthest) == pytest.approx((meters, meters))
    for record in [*listing.train, *listing.val]:
        digits = [[c for c in str(path) if c.isdigit()][-1] for path in (record.path, record.mask)]
        assert 'image_02' in str(record.path) or digits[0] == digits[1]


def test_what_cannot_be_right_is_a_sentence(tmp_path):
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


def test_images_without_a_map_are_noted(tmp_path):
    for i in range(3):
        write(tmp_path, f'images/{i}.jpg', f'depth/{i}.png')
    (tmp_path / 'depth/2.png').unlink()
    listing, _ = read_depth_folder(Tree(tmp_path))
    assert 'images left out, since they have no depth map' in listing.findings.warnings
