import numpy as np
import pytest
import torch
from mmengine.structures import BaseDataElement, PixelData

from vit_plugin.report.outcomes import outcomes_kind
from vit_plugin.tasks.depth.depth_outcomes import DepthOutcomes


def sample(true, predicted):
    true, predicted = (PixelData(data=torch.tensor([values])) for values in (true, predicted))
    return BaseDataElement(gt_depth_map=true, pred_depth_map=predicted)


def test_errors_are_relative_and_unknown_pixels_do_not_count():
    found = DepthOutcomes((), 3)
    samples = [
        sample([[2.0, 4.0], [0.0, 1.0]], [[2.0, 3.0], [9.0, 1.5]]),
        sample([[5.0]], [[5.0]]),
        sample([[0.0]], [[1.0]]),
    ]
    assert outcomes_kind(samples[0]) is DepthOutcomes
    for position, one in enumerate(samples):
        found.add(position, one)
    assert found.errors() == {0: pytest.approx(25), 1: 0}
    assert found.pages()['val_worst'][1] == [0]
    assert found.scores() is found.confusion_matrix() is None
    _, true, predicted = found.panels(0, np.zeros((2, 2, 3), np.uint8))
    assert predicted.title == 'predicted, AbsRel 25.0 %'
    assert (true.image[0, 0] == predicted.image[0, 0]).all()  # the same colors of the same depth
    assert true.image[1, 0].sum() < true.image[0, 1].sum()  # unknown


def test_a_disparity_is_fitted_first():
    found = DepthOutcomes((), 1)
    found.target = 'disparity'
    true = torch.rand(4, 5, generator=torch.Generator().manual_seed(0)) + 1
    found.add(0, sample(true.tolist(), (3 / true + 2).tolist()))
    assert found.errors()[0] == pytest.approx(0, abs=1e-3)
