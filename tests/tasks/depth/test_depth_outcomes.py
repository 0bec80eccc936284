"""Outcomes of depth models: errors and pictures."""

import numpy as np
import pytest
import torch
from mmengine.structures import BaseDataElement, PixelData

from vit_plugin.report.outcomes import outcomes_class
from vit_plugin.tasks.depth.depth_outcomes import DepthOutcomes


def sample(true, predicted):
    true, predicted = (PixelData(data=torch.tensor([values])) for values in (true, predicted))
    return BaseDataElement(gt_depth_map=true, pred_depth_map=predicted)


def test_errors_are_relative_and_ignore_unknown_pixels():
    outcomes = DepthOutcomes((), 3)
    samples = [
        sample([[2.0, 4.0], [0.0, 1.0]], [[2.0, 3.0], [9.0, 1.5]]),
        sample([[5.0]], [[5.0]]),
        sample([[0.0]], [[1.0]]),
    ]
    assert outcomes_class(samples[0]) is DepthOutcomes
    for position, data_sample in enumerate(samples):
        outcomes.add(position, data_sample)
    assert outcomes.errors() == {0: pytest.approx(25), 1: 0}
    assert outcomes.pages()['val_worst'][1] == [0]
    assert outcomes.scores() is outcomes.confusion_matrix() is None
    _, true, predicted = outcomes.panels(0, np.zeros((2, 2, 3), np.uint8))
    assert predicted.title == 'predicted, AbsRel 25.0 %'
    assert (true.image[0, 0] == predicted.image[0, 0]).all()  # equal depths have equal colors
    assert true.image[1, 0].sum() < true.image[0, 1].sum()  # unknown pixels are dark


def test_disparities_are_fitted_before_scoring():
    outcomes = DepthOutcomes((), 1)
    outcomes.target = 'disparity'
    true = torch.rand(4, 5, generator=torch.Generator().manual_seed(0)) + 1
    outcomes.add(0, sample(true.tolist(), (3 / true + 2).tolist()))
    assert outcomes.errors()[0] == pytest.approx(0, abs=1e-3)


def test_disparity_that_is_the_same_everywhere_has_an_error():
    outcomes = DepthOutcomes((), 1)
    outcomes.target = 'disparity'
    outcomes.add(0, sample([[1.0, 2.0]], [[0.0, 0.0]]))
    assert outcomes.errors()[0] == pytest.approx(100 / 3)  # the mean of 1 and 1 / 2 is 3 / 4
