"""Scores of segmented images and volumes: Dice, surface distance and boundary F1."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from extras import needs_mmdet
from rejection import rejects
from scipy import ndimage

from vit_plugin.engine import SurfaceMetric
from vit_plugin.projects.medical_volumes.surface_metric import surface_distances


def evaluate(pairs, classes=('background', 'disc'), metas=None, **kwargs) -> dict[str, float]:
    """The scores for pairs of predicted and true class maps.

    Args:
        pairs: the maps of each image or slice.
        classes: names of the classes.
        metas: metainfo of each image or slice.
        **kwargs: arguments of the metric.
    """
    metric = SurfaceMetric(**kwargs)
    metric.dataset_meta = dict(classes=classes)
    samples = [
        dict(
            pred_sem_seg=dict(data=torch.from_numpy(np.asarray(predicted))[None]),
            gt_sem_seg=dict(data=torch.from_numpy(np.asarray(true))[None]),
            **{'img_path': '', **meta},
        )
        for (predicted, true), meta in zip(pairs, metas or [{}] * len(pairs), strict=True)
    ]
    metric.process({}, samples)
    return metric.evaluate(len(samples))


def square(left: int) -> np.ndarray:
    """A class map (20, 20) with a square of 6 x 6 pixels that begins in this column."""
    mask = np.zeros((20, 20), int)
    mask[5:11, left : left + 6] = 1
    return mask


def nearest_distances(first: np.ndarray, second: np.ndarray, spacing: np.ndarray) -> np.ndarray:
    """For each pixel of the first surface, the distance to the nearest pixel of the second."""
    a, b = (np.argwhere(mask & ~ndimage.binary_erosion(mask)) * spacing for mask in (first, second))
    return np.linalg.norm(a[:, None] - b[None], axis=-1).min(1)


@pytest.mark.parametrize('shape', [(17, 23), (5, 11, 9)])
def test_distances_equal_the_minima_over_all_pairs(shape):
    rng = np.random.default_rng(0)
    first, second = (ndimage.gaussian_filter(rng.random(shape), 1) > 0.52 for _ in range(2))
    spacing = np.array((3.0, 0.5, 0.7)[-len(shape) :])
    forward, backward = surface_distances(first, second, spacing)
    for distances, expected in (
        (forward, nearest_distances(first, second, spacing)),
        (backward, nearest_distances(second, first, spacing)),
    ):
        np.testing.assert_allclose(np.sort(distances), np.sort(expected), atol=1e-9)


def test_scores_of_a_shifted_square():
    scores = evaluate([(square(4), square(7))])  # of 36 pixels each, 18 overlap
    assert scores['mDice'] == scores['Dice.disc'] == pytest.approx(100 * 2 * 18 / 72)
    assert scores['mHD95'] == pytest.approx(3)
    near = evaluate([(square(4), square(5))])
    assert near['mBF1'] == 100
    assert 0 < scores['mBF1'] < 100
    assert evaluate([(square(4), square(7))], tolerance=3)['mBF1'] == 100
    assert evaluate([(square(4), square(7))], spacing=(1, 0.5))['mHD95'] == pytest.approx(1.5)
    perfect = evaluate([(square(4), square(4))])
    assert (perfect['mDice'], perfect['mHD95'], perfect['mBF1']) == (100, 0, 100)


def test_slices_of_a_case_are_one_volume():
    rng = np.random.default_rng(0)
    predicted, true = rng.integers(2, size=(2, 4, 9, 9))
    metas = [dict(case='a', slice=i) for i in (2, 0, 3, 1)]
    pairs = [(predicted[meta['slice']], true[meta['slice']]) for meta in metas]
    scores = evaluate(pairs, metas=metas, spacing=(2, 1, 1))
    both = np.concatenate(surface_distances(predicted == 1, true == 1, np.array((2.0, 1.0, 1.0))))
    assert scores['mHD95'] == pytest.approx(np.percentile(both, 95))
    overlap = 2 * (predicted & true).sum() / (predicted.sum() + true.sum())
    assert scores['mDice'] == pytest.approx(100 * overlap)


@pytest.mark.parametrize('has_number', [True, False])
def test_slices_are_ordered_by_number_and_not_by_the_text_of_their_paths(has_number):
    def case(indices):
        """The scores of the slices with these indices, in this order."""
        metas = [dict(case='a', slice=i) for i in range(len(indices))]
        return evaluate([pairs[i] for i in indices], metas=metas, spacing=(2, 1, 1))

    maps = np.random.default_rng(0).random((12, 2, 9, 9)) > 0.95
    pairs = [*maps.astype(int)]
    metas = [
        dict(case='a', img_path=f'slice_{i}.npz', slice=i if has_number else None)
        for i in range(12)
    ]
    scores = evaluate(pairs, metas=metas, spacing=(2, 1, 1))
    assert scores == case(range(12))
    assert scores != case(sorted(range(12), key=str))  # 0, 1, 10, 11, 2, ...


def test_cases_count_equally_and_ignored_pixels_do_not_count():
    true = square(4).copy()
    predicted = true.copy()
    true[0], predicted[0] = 255, 1  # 255 is ignored
    scores = evaluate([(predicted, true), (square(4), square(7))])
    assert scores['mDice'] == pytest.approx((100 + 50) / 2)


def test_absent_classes_are_left_out_or_scored_as_in_transunet():
    nothing = np.zeros((20, 20), int)
    pairs = [(square(4), square(4)), (nothing, nothing)]
    assert evaluate(pairs)['mDice'] == 100
    assert evaluate(pairs, absent='transunet')['mDice'] == 50
    pairs[1] = (nothing, square(4))  # missed
    missed = evaluate(pairs)
    assert (missed['mDice'], missed['mHD95']) == (50, 0)
    pairs[1] = (square(4), nothing)  # predicted, but not there
    assert evaluate(pairs)['mDice'] == 50
    assert evaluate(pairs, absent='transunet')['mDice'] == 100
    assert np.isnan(evaluate([(nothing, nothing)])['mDice'])


def test_the_background_is_scored_if_configured():
    assert evaluate([(square(4), square(4))], ignore_background=False).keys() >= {'Dice.background'}


def test_slices_of_several_sizes_raise():
    pairs = [(np.ones((4, 4), int),) * 2, (np.ones((4, 5), int),) * 2]
    with rejects(r"slices of case 'a' have the sizes \[\(4, 4\), \(4, 5\)\]"):
        evaluate(pairs, metas=[dict(case='a')] * 2)


def test_spacing_of_another_length_raises():
    with rejects('spacing=.* has 3 values, but a case has 2 axes'):
        evaluate([(square(4), square(4))], spacing=(1, 1, 1))


def test_no_class_but_an_ignored_background_raises():
    with rejects('ignore_background leaves out the only class'):
        evaluate([(square(4), square(4))], classes=('organ',))


@pytest.mark.nightly
@needs_mmdet
def test_metric_builds_after_mmdetection_was_imported():
    """MMSegmentation imports MMDetection, although a segmentor needs none of its ops."""
    code = (
        'import mmdet.structures; from mmengine.registry import METRICS; '
        "print(type(METRICS.build(dict(type='vit_plugin.SurfaceMetric'))))"
    )
    python = [sys.executable, '-W', 'ignore', '-c', code]
    printed = subprocess.run(python, check=True, capture_output=True, text=True).stdout
    assert 'SurfaceMetric' in printed
