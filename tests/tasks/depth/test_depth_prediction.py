"""Predicted depth maps as text, rows and pictures."""

import numpy as np
import pytest

from vit_plugin.inference.predictions import draw_prediction
from vit_plugin.tasks.depth.depth_prediction import DepthPrediction


def test_text_has_meters_for_depth_and_no_unit_for_disparity():
    values = np.array([[1.0, 2.0], [3.0, 4.0]])
    targets = ('depth', 'disparity')
    depth, disparity = (DepthPrediction.of_depth(values, target) for target in targets)
    assert depth.text() == 'depth from 1.00 m to 4.00 m, 2.50 m in the middle'
    assert disparity.text() == 'disparity from 1.00 to 4.00, 2.50 in the middle'
    assert depth.rows() == [dict(zip(depth.columns, (1.0, 2.5, 4.0), strict=True))]
    assert depth.arrays()['_depth.tiff'].dtype == np.float32


@pytest.mark.parametrize(('target', 'nearest'), [('depth', 0), ('disparity', -1)])
def test_near_pixels_are_drawn_bright(target, nearest):
    values = np.linspace(1, 5, 40)[:, None].repeat(800, axis=1)
    image = np.zeros((40, 800, 3), np.uint8)
    picture = draw_prediction(image, DepthPrediction.of_depth(values, target), 0.3)
    right = picture[:, -1].astype(int).sum(axis=-1)  # to the right of the legend
    assert right[nearest] == right.max() > right.min() == right[-1 - nearest]
