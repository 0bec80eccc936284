"""The first picture of the README."""

import numpy as np
import pytest

pytest.importorskip('skimage')
pytest.importorskip('onnxruntime')
from benchmarks.first_picture import GAP, HEIGHT, side_by_side


def test_images_are_scaled_to_the_same_height():
    figure = side_by_side([[np.zeros((30, 40, 3))], [np.zeros((10, 10, 3)), np.zeros((5, 5, 3))]])
    width, height = figure.get_size_inches() * figure.dpi
    assert (round(width), round(height)) == (HEIGHT * 40 // 30 + GAP + 2 * HEIGHT, HEIGHT)
