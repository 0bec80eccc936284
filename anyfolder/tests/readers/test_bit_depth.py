"""Images of more than 8 bits: the window in which they are seen, and those that are rejected.

Also images in a color space that cannot be read.
"""

import cv2
import numpy as np
import pytest
from listings import notes_of
from PIL import Image
from rejection import rejects

from anyfolder.pixels.images import decode
from anyfolder.readers.class_folders import read_class_folders
from anyfolder.readers.image_tree import Tree


def write(folder, values: np.ndarray, name_template: str = '{}.png'):
    """Four images of each of two classes, with these values."""
    for i in range(8):
        path = folder / 'ab'[i % 2] / name_template.format(i)
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = np.roll(values, i, axis=1)  # so that no two images are equal
        if pixels.ndim == 2:
            Image.fromarray(pixels).save(path)
        else:
            cv2.imwrite(str(path), pixels)
    return folder


def ramp(low: float, high: float, dtype: str = 'uint16') -> np.ndarray:
    return np.linspace(low, high, 256).reshape(16, 16).astype(dtype)


@pytest.mark.parametrize('highest', [40000, 65535])  # the highest bit is used
@pytest.mark.parametrize('suffix', ['.png', '.tif'])
def test_images_with_enough_contrast_are_not_reported(tmp_path, highest, suffix):
    tree = Tree(write(tmp_path, ramp(0, highest), '{}' + suffix))
    assert [note for note in notes_of(read_class_folders(tree)) if 'bits' in note[0]] == []


@pytest.mark.parametrize(
    ('values', 'window'),
    [
        # Dark: from 0 to the highest value of the bits that are used.
        (ramp(0, 4095), '0, 4095'),
        (ramp(0, 1000), '0, 1023'),
        (ramp(0, 200), '0, 255'),
        (np.stack([ramp(0, 4000)] * 3, axis=-1), '0, 4095'),
        # Pale: from the lowest value to the highest.
        (ramp(33069, 36863), '33069, 36863'),
    ],
)
@pytest.mark.parametrize('suffix', ['.png', '.tif'])
def test_dark_or_pale_images_are_reported_with_their_window(tmp_path, values, window, suffix):
    tree = Tree(write(tmp_path, values, '{}' + suffix))
    notes = [note for note in notes_of(read_class_folders(tree)) if 'bits' in note[0]]
    [(what, count)] = notes
    assert what.endswith(f', best seen with black and white at ({window})')
    assert count == 8
    lower, upper = map(float, window.split(','))
    assert tree.probes.window == (lower, upper)


@pytest.mark.parametrize('value', [0, 1, 5000])
def test_images_of_one_value_need_no_window(tmp_path, value):
    tree = Tree(write(tmp_path, np.full((16, 16), value, 'uint16')))
    what = f'dark or pale images of 16 bits, with the value {value} alone where decoded'
    assert (what, 8) in notes_of(read_class_folders(tree))
    assert tree.probes.window is None


def test_unreadable_image_does_not_affect_the_window(tmp_path):
    write(tmp_path, ramp(0, 4095))
    (tmp_path / 'a/damaged.png').write_bytes(b'damaged')
    tree = Tree(tmp_path)
    assert ('images left out, since they cannot be read', 1) in notes_of(read_class_folders(tree))
    assert tree.probes.window == (0, 4095)


def test_alpha_does_not_affect_the_window(tmp_path):
    color = np.stack([ramp(0, 4000)] * 3 + [np.full((16, 16), 65535, 'uint16')], axis=-1)
    tree = Tree(write(tmp_path, color))
    read_class_folders(tree)
    assert tree.probes.window == (0, 4095)


@pytest.mark.parametrize('highest', [1023, 4095])
def test_window_of_ppm_is_its_stated_range(tmp_path, highest):
    for i in range(8):
        path = tmp_path / 'ab'[i % 2] / f'{i}.ppm'
        path.parent.mkdir(exist_ok=True)
        pixels = np.stack([ramp(0, highest)] * 3, axis=-1).astype('>u2')
        path.write_bytes(b'P6 16 16 %d\n' % highest + pixels.tobytes())
    tree = Tree(tmp_path)
    read_class_folders(tree)
    assert tree.probes.window == (0, highest)


def test_narrow_ranges_next_to_wide_ones_are_reported(tmp_path):
    write(tmp_path, ramp(0, 4095))
    write(tmp_path, ramp(0, 65535), '{}_wide.png')
    tree = Tree(tmp_path)
    what = 'dark or pale images of 16 bits next to others; save all with one range'
    assert (what, 8) in notes_of(read_class_folders(tree))
    assert tree.probes.window is None


def test_folder_without_a_readable_image_raises(tmp_path):
    write(tmp_path, np.zeros((8, 8, 3), 'float32'), '{}.tiff')
    with rejects('none of 8 images can be read, such as .*0.tiff'):
        read_class_folders(Tree(tmp_path))


@pytest.mark.parametrize(
    ('dtype', 'high', 'window'),
    [('float32', 1, '0, 1'), ('float32', 255, '0, 255'), ('int32', 60000, '0, 65535')],
)
def test_images_of_32_bits_raise_with_their_window(tmp_path, dtype, high, window):
    tree = Tree(write(tmp_path, ramp(0, high, dtype), '{}.tif'))
    with rejects(rf'32 bits per value.*where \({window}\) becomes'):
        read_class_folders(tree)


@pytest.mark.parametrize(('count', 'window'), [(3, '0, 255'), (256, '0, 0')])
def test_window_is_that_of_finite_values(tmp_path, count, window):
    values = ramp(255, 0, 'float32')
    values.flat[-count:] = np.inf
    values[-1, -1] = np.nan
    with rejects(rf'32 bits per value.*where \({window}\) becomes'):
        read_class_folders(Tree(write(tmp_path, values, '{}.tif')))


def test_no_window_is_applied_next_to_images_of_8_bits(tmp_path):
    write(tmp_path, ramp(0, 4095))
    write(tmp_path, ramp(0, 255, 'uint8'), '{}_8.png')
    tree = Tree(tmp_path)
    notes = notes_of(read_class_folders(tree))
    assert tree.probes.window is None
    [count] = [count for what, count in notes if 'save all with the same number of bits' in what]
    assert count == 8


def test_images_of_32_bits_can_be_left_out(tmp_path):
    write(tmp_path, ramp(0, 255, 'uint8'))
    Image.fromarray(ramp(0, 1, 'float32')).save(tmp_path / 'a/deep.tif')
    listing = read_class_folders(Tree(tmp_path), skip_invalid=True)
    assert len(listing.train + listing.val) == 8


def test_images_in_cielab_are_left_out(tmp_path):
    write(tmp_path, ramp(0, 255, 'uint8'))
    Image.new('LAB', (8, 8)).save(tmp_path / 'a/lab.tif')
    listing = read_class_folders(Tree(tmp_path))
    assert ('images left out, since they cannot be read', 1) in notes_of(listing)
    with pytest.raises(ValueError, match='CIE'):
        decode((tmp_path / 'a/lab.tif').read_bytes())
