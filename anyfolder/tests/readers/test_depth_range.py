"""Values that stand for pixels of no depth are not the farthest depth."""

import numpy as np
import pytest
from image_folders import write_depth
from listings import notes_of
from PIL import Image
from rejection import rejects

from anyfolder.pixels.depth_maps import read_depth
from anyfolder.readers.class_folders import read_class_folders
from anyfolder.readers.depth_folders import read_depth_folder
from anyfolder.readers.image_tree import Tree

FAR = 'depth maps with values far beyond the others, taken as pixels without depth'


def read(folder, change, dtype='float32', scale=None):
    """Maps from 1 to 3.15 m after a change, as numbers in meters, or in millimeters as PNG."""
    write_depth(folder)
    for path in sorted((folder / 'depth').iterdir()):
        values = np.asarray(Image.open(path)) / 1000
        values = change(values.copy(), int(path.stem))
        path.unlink()
        if dtype == 'uint16':
            Image.fromarray((1000 * values).round().astype(dtype)).save(path)
        else:
            np.save(path.with_suffix('.npy'), values.astype(dtype))
    return read_depth_folder(Tree(folder), scale)


def rows(value, first=0, last=6):
    def change(values, number):
        values[first:last] = value
        return values

    return change


@pytest.mark.parametrize('value', [65504, 1e10, 1000, 100, 50])
@pytest.mark.parametrize('last', [5, 30])
def test_one_value_far_beyond_the_others_is_no_depth(tmp_path, value, last):
    """bts#15: CARLA's sky has 1000 m, and renderers write 65504 or 1e10."""
    listing, found = read(tmp_path, rows(value, last=last))
    assert found.farthest == pytest.approx(3.15)
    assert found.median < 4
    assert (FAR, 6) in notes_of(listing)


def test_the_largest_integer_is_no_depth(tmp_path):
    """MatrixCity#22: 65535 is the sky, or where a camera measured nothing."""
    listing, found = read(tmp_path, rows(65.535), 'uint16')
    assert found.farthest == pytest.approx(3.15)
    depth = read_depth(listing.train[0].mask, 0.001)
    assert (depth[:6] == 0).all()
    assert (depth[6:] > 0).all()


def test_the_edges_of_what_has_no_depth_may_be_mixed_with_it(tmp_path):
    """A renderer smooths them, so that they have values between."""

    def change(values, number):
        values[:6] = 1e10
        values[6] = np.linspace(1e6, 9e9, values.shape[1])
        return values

    _, found = read(tmp_path, change)
    assert found.farthest == pytest.approx(3.15)


def test_two_values_may_stand_for_no_depth(tmp_path):
    def change(values, number):
        values[:6], values[:3] = 1000, 1e10
        return values

    _, found = read(tmp_path, change)
    assert found.farthest == pytest.approx(3.15)


def test_a_map_of_that_value_alone_has_no_known_pixel(tmp_path):
    def change(values, number):
        values[:6] = 1000
        return np.full_like(values, 1000) if number == 5 else values

    listing, found = read(tmp_path, change)
    assert (found.farthest, found.median) == (pytest.approx(3.15), pytest.approx(2.2, abs=0.1))
    assert ('depth maps without a known pixel', 1) in notes_of(listing)


@pytest.mark.parametrize(
    ('change', 'farthest'),
    [
        (rows(5), 5),  # clipped, and near the others
        # seen through a window, at many distances
        (lambda values, number: np.where(values > 3.1, 20 * values, values), 63),
        (lambda values, number: 20 * values, 63),
        # a landscape without a gap
        (lambda values, number: np.geomspace(5, 900, values.size).reshape(values.shape), 900),
    ],
)
def test_depth_that_is_far_stays(tmp_path, change, farthest):
    listing, found = read(tmp_path, change)
    assert found.farthest == pytest.approx(farthest, rel=0.01)
    assert FAR not in dict(notes_of(listing))


def test_stray_pixels_beyond_any_photograph_are_no_depth(tmp_path):
    def change(values, number):
        values[10, 10 + number] = 1e6 + number
        return values

    listing, found = read(tmp_path, change)
    assert found.farthest == pytest.approx(3.15)
    assert (FAR, 6) in notes_of(listing)


def test_two_maps_of_an_image_are_one_sentence_about_them(tmp_path):
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
    assert {one.mask.parent.name for one in listing.train} == {'depth'}


def test_images_and_maps_of_depth_are_no_classes(tmp_path):
    write_depth(tmp_path)
    with rejects('has images and depth maps; give task=.depth'):
        read_class_folders(Tree(tmp_path))
