"""Outcomes of panoptic models: scores and pictures."""

import numpy as np
import torch
from mmengine.structures import BaseDataElement, PixelData

from vit_plugin.report.outcomes import outcomes_class
from vit_plugin.tasks.panoptic.panoptic_outcomes import PanopticOutcomes


def test_panoptic_segments_are_compared_by_class():
    outcomes = PanopticOutcomes(('sky', 'sea', 'land'), 1)
    true, predicted = (
        PixelData(sem_seg=torch.tensor([[row]])) for row in ([0, 0, 1, 255], [0, 1000, 3, 2000])
    )
    data_sample = BaseDataElement(gt_sem_seg=true, pred_panoptic_seg=predicted)
    assert outcomes_class(data_sample) is PanopticOutcomes
    outcomes.add(0, data_sample)
    assert [row['IoU'] for row in outcomes.scores()['per_class']] == [100, 0, None]
    assert outcomes.errors() == {0: 50}
    _, drawn, errors = outcomes.panels(0, np.zeros((1, 4, 3), np.uint8))
    assert drawn.annotations.map.tolist() == [[0, 0, 255, 0]]
    assert errors.annotations.errors.tolist() == [[0, 0, 1, 0]]
