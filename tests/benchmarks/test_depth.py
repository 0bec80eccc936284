"""The scenes with depth, the score of boundaries, and a short training of each model."""

import numpy as np
import pytest
import torch

pytest.importorskip('skimage')
pytest.importorskip('mmseg')

from benchmarks.depth import Model, boundary_f1, evaluate, make_data, models, predict, train
from benchmarks.depth_scenes import scene


def test_a_scene_is_determined_by_its_seed():
    image, depth = scene(3)
    same, _ = scene(3)
    assert np.array_equal(image, same)
    assert not np.array_equal(image, scene(3, test=True)[0])
    assert image.shape == (96, 128, 3)
    assert 0.5 < depth.min() < depth.max() < 12


def test_boundaries_are_found_within_a_pixel():
    true = np.full((20, 20), 4.0)
    true[5:15, 5:15] = 2.0
    assert boundary_f1(true, true) == 1
    assert boundary_f1(np.roll(true, 1, axis=1), true) == 1
    assert boundary_f1(np.full_like(true, 3.0), true) == 0  # without boundaries
    assert 0 < boundary_f1(np.roll(true, 3, axis=1), true) < 1


@pytest.mark.nightly
@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('name', models())
def test_each_model_is_trained_and_scored(name):
    torch.manual_seed(0)
    images, depths = make_data(4, False)
    model = Model(*models()[name])
    assert train(model, images, depths, 1.0, 0) > 0
    assert evaluate(predict(model, images), depths).keys() == {'AbsRel', 'delta1', 'boundary F1'}
