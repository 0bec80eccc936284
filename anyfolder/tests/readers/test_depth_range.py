"""Values that mark pixels without depth are not taken for the farthest depth."""

import numpy as np
import pytest
from image_folders import write_depth
from listings import notes_of
from PIL import Image

from anyfolder.pixels.depth_maps import read_depth
from anyfolder.readers.depth_folders import read_depth_folder
from anyfolder.readers.image_tree import Tree

FAR = 'depth maps with values far beyond the others, taken as pixels without depth'
MAPS = 6  # number of depth maps


def read(folder, change, dtype='float32'):
    """Write maps of 1 to 3.15 m, change them, and read them, in meters or in millimeters as PNG.

    Args:
        folder: where they are saved.
        change: returns new values in meters for the values and the number of a map.
        dtype: ``'uint16'`` for PNG.
    """
    write_depth(folder, count=MAPS)
    for path in sorted((folder / 'depth').iterdir()):
        values = np.asarray(Image.open(path)) / 1000
        values = change(values.copy(), int(path.stem))
        path.unlink()
        if dtype == 'uint16':
            Image.fromarray((1000 * values).round().astype(dtype)).save(path)
        else:
            np.save(path.with_suffix('.npy'), values.astype(dtype))
    return read_depth_folder(Tree(folder))


def set_rows(value, count=6):
    """A change that sets the first rows to a value."""

    def change(values, number):
        values[:count] = value
        return values

    return change


@pytest.mark.parametrize('value', [65504, 1e10, 1000, 100, 50])
@pytest.mark.parametrize('count', [5, 30])
def test_value_far_beyond_the_others_is_not_depth(tmp_path, value, count):
    """bts#15: CARLA's sky has 1000 m, and renderers write 65504 or 1e10."""
    listing, depths = read(tmp_path, set_rows(value, count))
    assert depths.farthest == pytest.approx(3.15)
    assert depths.median < 4
    assert (FAR, MAPS) in notes_of(listing)


def test_largest_integer_is_not_depth(tmp_path):
    """MatrixCity#22: 65535 is the sky, or where a camera measured nothing."""
    listing, depths = read(tmp_path, set_rows(65.535), 'uint16')
    assert depths.farthest == pytest.approx(3.15)
    depth = read_depth(listing.train[0].mask, 0.001)
    assert (depth[:6] == 0).all()
    assert (depth[6:] > 0).all()


def test_smoothed_edges_of_regions_without_depth_are_not_depth(tmp_path):
    """At such edges, antialiasing mixes the marker with real depths."""

    def change(values, number):
        values[:6] = 1e10
        values[6] = np.linspace(1e6, 9e9, values.shape[1])
        return values

    _, depths = read(tmp_path, change)
    assert depths.farthest == pytest.approx(3.15)


def test_two_values_may_mark_pixels_without_depth(tmp_path):
    def change(values, number):
        values[:6], values[:3] = 1000, 1e10
        return values

    _, depths = read(tmp_path, change)
    assert depths.farthest == pytest.approx(3.15)


def test_maps_without_any_depth_are_reported(tmp_path):
    def change(values, number):
        values[:6] = 1000
        return np.full_like(values, 1000) if number == 5 else values

    listing, depths = read(tmp_path, change)
    assert (depths.farthest, depths.median) == (pytest.approx(3.15), pytest.approx(2.2, abs=0.1))
    assert ('depth maps without a known pixel', 1) in notes_of(listing)


@pytest.mark.parametrize(
    ('change', 'farthest'),
    [
        (set_rows(5), 5),  # clipped, and near the others
        # seen through a window, at many distances
        (lambda values, number: np.where(values > 3.1, 20 * values, values), 63),
        (lambda values, number: 20 * values, 63),  # all maps are far
        # a landscape without a gap
        (lambda values, number: np.geomspace(5, 900, values.size).reshape(values.shape), 900),
    ],
)
def test_far_depth_is_kept(tmp_path, change, farthest):
    listing, depths = read(tmp_path, change)
    assert depths.farthest == pytest.approx(farthest, rel=0.01)
    assert FAR not in dict(notes_of(listing))


def test_stray_pixels_beyond_any_photograph_are_not_depth(tmp_path):
    def change(values, number):
        values[10, 10 + number] = 1e6 + number
        return values

    listing, depths = read(tmp_path, change)
    assert depths.farthest == pytest.approx(3.15)
    assert (FAR, MAPS) in notes_of(listing)
