import pytest
import torch
from mmengine.structures import InstanceData

from vit_plugin.inference.predictions import Prediction, names_of


def test_classes_of_one_name_have_their_numbers():
    assert names_of(torch.tensor([2, 1, 5]), ['crane', 'cat', 'crane']) == ['crane (2)', 'cat', '5']


def test_instances_have_masks_in_the_order_of_their_scores():
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
    found = Prediction.of(sample, ['cat', 'dog'])
    assert found.names == ['dog', 'cat']
    assert found.labels.tolist() == [1, 0]
    assert found.masks[0].nonzero() == (1, 2)
    assert found.columns == tuple(found.rows()[0])
    assert found.text() == '1 dog'
