"""scikit-learn's digits: their split and their pixels."""

import numpy as np
from rejection import rejects
from sklearn.datasets import load_digits

from vit_plugin.data import Digits


def labels(part: Digits) -> np.ndarray:
    return np.array([part.get_data_info(i)['gt_label'] for i in range(len(part))])


def images(part: Digits) -> np.ndarray:
    return np.stack([part.get_data_info(i)['img'] for i in range(len(part))])


def test_a_stratified_fifth_is_held_out():
    train, val = Digits('train'), Digits('val')
    assert (len(train), len(val)) == (1437, 360)
    shares = [np.bincount(labels(part)) / len(part) for part in (train, val)]
    np.testing.assert_allclose(*shares, atol=0.003)
    expected = np.sort(load_digits().images.reshape(1797, -1).sum(1) * 255 / 16)
    together = np.sort(
        np.concatenate([images(train), images(val)]).reshape(1797, -1).sum(1, dtype=float)
    )
    # Each digit once, up to rounding.
    np.testing.assert_allclose(together, expected, atol=32)


def test_images_span_the_range_of_uint8():
    array = images(Digits('val'))
    assert array.shape == (360, 8, 8, 1)
    assert (array.dtype, array.min(), array.max()) == (np.uint8, 0, 255)


def test_seed_changes_the_split():
    first, same, other = (images(Digits('val', seed=seed)) for seed in (0, 0, 1))
    assert np.array_equal(first, same)
    assert not np.array_equal(first, other)


def test_unknown_splits_raise():
    with rejects("split='test' must be 'train' or 'val'"):
        Digits('test')
