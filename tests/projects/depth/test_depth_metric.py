"""Errors of depth, by hand, and depth maps as they are read."""

import numpy as np
import pytest
import torch
from PIL import Image
from rejection import rejects

from vit_plugin.data.unreadable import UnreadableError
from vit_plugin.registry import METRICS, TRANSFORMS


def sample(found, true):
    return dict(
        pred_depth_map=dict(data=torch.tensor([[found]])),
        gt_depth_map=dict(data=torch.tensor([[true]])),
    )


def metric(**arguments):
    return METRICS.build(dict(type='vit_plugin.DepthMetric', **arguments))


def test_errors_are_the_means_over_images_of_their_known_pixels():
    scores = metric()
    scores.process(None, [sample([1.0, 3.0, 9.0], [2.0, 3.0, 0.0]), sample([4.0], [4.0])])
    found = scores.evaluate(2)
    assert found['AbsRel'] == pytest.approx(0.5 * (0.25 + 0))
    assert found['RMSE'] == pytest.approx(0.5 * 0.5**0.5)
    assert found['delta1'] == pytest.approx(0.75)


def test_an_image_without_depth_and_a_prediction_of_zero_do_not_spoil_it():
    scores = metric()
    scores.process(None, [sample([1.0], [0.0]), sample([0.0, 2.0], [2.0, 2.0])])
    assert all(np.isfinite(value) for value in scores.evaluate(2).values())
    with rejects('no pixel of the data has a depth'):
        metric().compute_metrics([])


def test_a_disparity_is_fitted_first():
    true = [1.0, 2.0, 4.0, 5.0]
    scores = metric(mode='disparity')
    scores.process(None, [sample([3 / depth - 1 for depth in true], true)])
    assert scores.evaluate(1)['AbsRel'] == pytest.approx(0, abs=1e-5)


def load(path, size, **arguments):
    step = TRANSFORMS.build(dict(type='vit_plugin.LoadDepthAnnotations', **arguments))
    return step(dict(depth_map_path=str(path), ori_shape=size))['gt_depth_map']


def test_maps_in_all_forms_are_meters_and_0_where_nothing_is_known(tmp_path):
    values = np.array([[0, 500, 2000], [1000, 65535, 3000]])
    Image.fromarray(values.astype(np.uint16)).save(tmp_path / 'a.png')
    meters = values.astype(np.float32) / 1000
    wanted = np.where(meters > 60, 0, meters)
    np.testing.assert_allclose(
        load(tmp_path / 'a.png', (2, 3), scale=1e-3, max_depth=60), wanted, rtol=1e-6
    )
    meters[0, 0], meters[1, 1] = np.nan, np.inf
    Image.fromarray(meters).save(tmp_path / 'a.tiff')
    np.save(tmp_path / 'a.npy', meters[..., None])
    for name in ('a.tiff', 'a.npy'):
        np.testing.assert_allclose(load(tmp_path / name, (2, 3)), wanted, rtol=1e-6)
    with pytest.raises(UnreadableError, match='it has 3 x 2 pixels, and its image 4 x 2'):
        load(tmp_path / 'a.npy', (2, 4))


@pytest.mark.parametrize(
    ('name', 'array', 'message'),
    [
        ('a.png', np.ones((2, 3), np.uint8), '8 bits, as pictures have'),
        ('a.npy', np.ones((2, 3, 3)), 'not one value for each pixel'),
        ('a.exr', None, 'EXR is not read'),
    ],
)
def test_what_is_no_map_of_depth(tmp_path, name, array, message):
    if array is None:
        (tmp_path / name).write_bytes(b'v/1\x01')
    elif name.endswith('npy'):
        np.save(tmp_path / name, array)
    else:
        Image.fromarray(array).save(tmp_path / name)
    with pytest.raises(UnreadableError, match=message):
        load(tmp_path / name, (2, 3))
