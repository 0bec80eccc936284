"""Names of classes, and boxes of MMDetection as a prediction."""

import pytest
import torch
from mmengine.structures import InstanceData

from vit_plugin.inference.predictions import Prediction, names_of


def test_ambiguous_names_of_classes_get_their_numbers():
    names = names_of(torch.tensor([2, 1, 5, -1]), ['crane', 'cat', 'crane'])
    assert names == ['crane (2)', 'cat', '5', '-1']


def test_instances_are_sorted_by_score_with_their_masks():
    pytest.importorskip('mmdet')
    from mmdet.structures import DetDataSample

    masks = torch.zeros(2, 4, 6, dtype=torch.bool)
    masks[1, 1, 2] = True
    sample = DetDataSample(
        pred_instances=InstanceData(
            bboxes=torch.arange(8.0).view(2, 4),
            scores=torch.tensor([0.2, 0.9]),
            labels=torch.tensor([0, 1]),
            masks=masks,
        )
    )
    prediction = Prediction.of(sample, ['cat', 'dog'])
    assert prediction.names == ['dog', 'cat']
    assert prediction.labels.tolist() == [1, 0]
    assert prediction.masks[0].nonzero() == (1, 2)
    assert prediction.columns == tuple(prediction.rows()[0])
    assert prediction.text() == '1 dog'
