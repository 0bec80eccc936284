"""Images of more than 8 bits: the range that they have."""

import cv2
import numpy as np
import pytest
from PIL import Image
from rejection import rejects

from anyfolder.pixels.images import decode
from anyfolder.readers.class_folders import read_class_folders
from anyfolder.readers.image_tree import Tree


def write(folder, values: np.ndarray, name: str = '{}.png'):
    """Four images of two classes that have these values."""
    for i in range(8):
        path = folder / 'ab'[i % 2] / name.format(i)
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = np.roll(values, i, axis=1)
        Image.fromarray(pixels).save(path) if pixels.ndim == 2 else cv2.imwrite(str(path), pixels)
    return folder


def ramp(low: float, high: float, kind: str = 'uint16') -> np.ndarray:
    return np.linspace(low, high, 256).reshape(16, 16).astype(kind)


@pytest.mark.parametrize(
    ('values', 'window'),
    [
        (ramp(0, 65535), None),
        (ramp(0, 40000), None),
        (ramp(0, 4095), '0, 4095'),
        (ramp(0, 1000), '0, 1023'),
        (ramp(0, 200), '0, 255'),
        (ramp(33069, 36863), '33069, 36863'),
        (np.stack([ramp(0, 4000)] * 3, axis=-1), '0, 4095'),
    ],
)
@pytest.mark.parametrize('suffix', ['.png', '.tif'])
def test_a_range_that_is_dark_or_pale_is_named_with_its_window(tmp_path, values, window, suffix):
    tree = Tree(write(tmp_path, values, '{}' + suffix))
    found = read_class_folders(tree)
    said = [(what, count) for what, count, _ in found.findings.rows() if 'bits' in what]
    assert len(said) == bool(window)
    if window:
        assert said[0][0].endswith(f', best seen with black and white at ({window})')
        assert said[0][1] == 8
        lower, upper = map(float, window.split(','))
        assert tree.probes.window == (lower, upper)


def test_transparency_is_no_value(tmp_path):
    color = np.stack([ramp(0, 4000)] * 3 + [np.full((16, 16), 65535, 'uint16')], axis=-1)
    tree = Tree(write(tmp_path, color))
    read_class_folders(tree)
    assert tree.probes.window == (0, 4095)


@pytest.mark.parametrize('highest', [1023, 4095])
def test_ppm_of_any_depth(tmp_path, highest):
    for i in range(8):
        path = tmp_path / 'ab'[i % 2] / f'{i}.ppm'
        path.parent.mkdir(exist_ok=True)
        pixels = np.stack([ramp(0, highest)] * 3, axis=-1).astype('>u2')
        path.write_bytes(b'P6 16 16 %d\n' % highest + pixels.tobytes())
    tree = Tree(tmp_path)
    read_class_folders(tree)
    assert tree.probes.window == (0, highest)


def test_a_narrow_range_beside_a_wide_one_is_named(tmp_path):
    write(tmp_path, ramp(0, 4095))
    write(tmp_path, ramp(0, 65535), '{}_wide.png')
    tree = Tree(tmp_path)
    rows = [row[:2] for row in read_class_folders(tree).findings.rows()]
    assert ('dark or pale images of 16 bits next to others; save all with one range', 8) in rows
    assert tree.probes.window is None


def test_images_of_which_none_can_be_read_are_one_sentence(tmp_path):
    write(tmp_path, np.zeros((8, 8, 3), 'float32'), '{}.tiff')
    with rejects(r'none of 8 images can be read, such as .*0.tiff.* \(it'):
        read_class_folders(Tree(tmp_path))


@pytest.mark.parametrize(
    ('kind', 'high', 'window'),
    [('float32', 1, '0, 1'), ('float32', 255, '0, 255'), ('int32', 60000, '0, 65535')],
)
def test_values_of_32_bits_are_refused_with_their_window(tmp_path, kind, high, window):
    tree = Tree(write(tmp_path, ramp(0, high, kind), '{}.tif'))
    with rejects(rf'32 bits per value.*where \({window}\) becomes'):
        read_class_folders(tree)


def test_beside_images_of_8_bits_no_window_is_applied(tmp_path):
    write(tmp_path, ramp(0, 4095))
    write(tmp_path, ramp(0, 255, 'uint8'), '{}_8.png')
    tree = Tree(tmp_path)
    rows = read_class_folders(tree).findings.rows()
    assert tree.probes.window is None
    assert [
        count for what, count, _ in rows if 'save all with the same number of bits' in what
    ] == [8]


def test_one_image_of_32_bits_can_be_left_out(tmp_path):
    write(tmp_path, ramp(0, 255, 'uint8'))
    Image.fromarray(ramp(0, 1, 'float32')).save(tmp_path / 'a/deep.tif')
    found = read_class_folders(Tree(tmp_path), skip_invalid=True)
    assert len(found.train + found.val) == 8


def test_colors_of_cielab_are_named(tmp_path):
    write(tmp_path, ramp(0, 255, 'uint8'))
    Image.new('LAB', (8, 8)).save(tmp_path / 'a/lab.tif')
    found = read_class_folders(Tree(tmp_path))
    assert ('images left out, since they cannot be read', 1) in [
        row[:2] for row in found.findings.rows()
    ]
    with pytest.raises(ValueError, match='CIE'):
        decode((tmp_path / 'a/lab.tif').read_bytes())
