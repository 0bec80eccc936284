"""The scenes of the first picture."""

import numpy as np
import pytest

pytest.importorskip('skimage')
pytest.importorskip('onnxruntime')
from benchmarks.first_picture import LEGEND, MARGIN, SIDES, scene, side_by_side


def test_shapes_leave_the_sides_and_the_legend_free():
    drawn = scene(np.zeros((40, 60, 3), np.uint8), seed=0).any(axis=-1)
    assert drawn.shape == SIDES[::-1]
    assert 0.05 < drawn.mean() < 0.5
    inner = drawn[MARGIN:-MARGIN, MARGIN:-MARGIN]
    assert inner.sum() == drawn.sum()
    assert not drawn[-LEGEND[1] :, -LEGEND[0] :].any()


def test_pictures_of_any_size_have_one_height():
    figure = side_by_side([np.zeros((30, 40, 3)), np.zeros((10, 10, 3))], (12, 0))
    width, height = figure.get_size_inches() * figure.dpi
    assert (round(width), round(height)) == (SIDES[0] + 12 + SIDES[1], SIDES[1])
