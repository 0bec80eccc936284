"""Depth metrics equal values computed by hand, and depth maps of all formats are read."""

import numpy as np
import pytest
import torch
from PIL import Image
from rejection import rejects

from vit_plugin.data.unreadable import UnreadableError
from vit_plugin.registry import METRICS, TRANSFORMS


def sample(predicted, true):
    """An image of one row of pixels, with its predicted and true depths."""
    return dict(
        pred_depth_map=dict(data=torch.tensor([[predicted]])),
        gt_depth_map=dict(data=torch.tensor([[true]])),
    )


def metric(**arguments):
    return METRICS.build(dict(type='vit_plugin.DepthMetric', **arguments))


def test_errors_are_means_over_images_of_known_pixels():
    scores = metric()
    # The first image has an error of 1 of 2 meters, one of 0, and an unknown pixel.
    scores.process(None, [sample([1.0, 3.0, 9.0], [2.0, 3.0, 0.0]), sample([4.0], [4.0])])
    errors = scores.evaluate(2)
    assert errors['AbsRel'] == pytest.approx(0.5 * (0.25 + 0))
    assert errors['RMSE'] == pytest.approx(0.5 * 0.5**0.5)
    assert errors['delta1'] == pytest.approx(0.75)


def test_unknown_images_and_zero_predictions_give_finite_scores():
    scores = metric()
    scores.process(None, [sample([1.0], [0.0]), sample([0.0, 2.0], [2.0, 2.0])])
    assert all(np.isfinite(value) for value in scores.evaluate(2).values())
    with rejects('no pixel of the data has a depth'):
        metric().compute_metrics([])


def test_disparities_are_fitted_before_scoring():
    true = [1.0, 2.0, 4.0, 5.0]
    scores = metric(mode='disparity')
    scores.process(None, [sample([3 / depth - 1 for depth in true], true)])
    assert scores.evaluate(1)['AbsRel'] == pytest.approx(0, abs=1e-5)


def load(path, size, **arguments):
    """Read a depth map for an image of this size (height, width)."""
    step = TRANSFORMS.build(dict(type='vit_plugin.LoadDepthAnnotations', **arguments))
    return step(dict(depth_map_path=str(path), ori_shape=size))['gt_depth_map']


def test_depth_maps_are_read_in_meters_with_0_for_unknown(tmp_path):
    values = np.array([[0, 500, 2000], [1000, 65535, 3000]])
    Image.fromarray(values.astype(np.uint16)).save(tmp_path / 'a.png')
    meters = values.astype(np.float32) / 1000
    expected = np.where(meters > 60, 0, meters)
    np.testing.assert_allclose(
        load(tmp_path / 'a.png', (2, 3), scale=1e-3, max_depth=60), expected, rtol=1e-6
    )
    meters[0, 0], meters[1, 1] = np.nan, np.inf
    Image.fromarray(meters).save(tmp_path / 'a.tiff')
    np.save(tmp_path / 'a.npy', meters[..., None])
    for name in ('a.tiff', 'a.npy'):
        np.testing.assert_allclose(load(tmp_path / name, (2, 3)), expected, rtol=1e-6)
    with pytest.raises(
        UnreadableError, match='does not fit its image .it has 3 x 2 pixels, and its image 4 x 2'
    ):
        load(tmp_path / 'a.npy', (2, 4))


@pytest.mark.parametrize(
    ('name', 'array', 'message'),
    [
        ('a.png', np.ones((2, 3), np.uint8), '8 bits, as pictures have'),
        ('a.npy', np.ones((2, 3, 3)), 'not one value for each pixel'),
        ('a.exr', None, 'EXR is not read'),
    ],
)
def test_files_without_depth_raise(tmp_path, name, array, message):
    if array is None:
        (tmp_path / name).write_bytes(b'v/1\x01')
    elif name.endswith('npy'):
        np.save(tmp_path / name, array)
    else:
        Image.fromarray(array).save(tmp_path / name)
    with pytest.raises(UnreadableError, match=message):
        load(tmp_path / name, (2, 3))
