"""Ground truth and predictions as they are read from data samples of the frameworks."""

import numpy as np
import pytest
import torch
from mmengine.structures import BaseDataElement, InstanceData, PixelData

from vit_plugin.report.pictures.annotations import Instances, read_instances, true_annotations

CLASSES = ['cat', 'dog']


def test_captions_name_the_classes_of_plain_and_mixed_images():
    sample = BaseDataElement(gt_label=torch.tensor([1]))
    assert true_annotations(sample, (4, 4), CLASSES).caption == 'dog'
    sample.gt_score = torch.tensor([0.3, 0.7])
    assert true_annotations(sample, (4, 4), CLASSES).caption == 'dog 0.70, cat 0.30'
    sample.gt_score = torch.tensor([1.0, 1.0])  # the image has both classes
    assert true_annotations(sample, (4, 4), CLASSES).caption == 'cat, dog'


def test_instances_include_crowds_and_masks():
    pytest.importorskip('mmdet')
    from mmdet.structures.bbox import HorizontalBoxes
    from mmdet.structures.mask import BitmapMasks

    masks = np.zeros((1, 4, 6), bool)
    masks[0, 1:3, 2:5] = True
    sample = BaseDataElement(
        gt_instances=InstanceData(
            bboxes=HorizontalBoxes([[2.0, 1.0, 5.0, 3.0]]),
            labels=torch.tensor([1]),
            masks=BitmapMasks(masks, 4, 6),
        ),
        ignored_instances=InstanceData(
            bboxes=torch.tensor([[0.0, 0.0, 2.0, 2.0]]), labels=torch.tensor([0])
        ),
        pred_instances=InstanceData(
            bboxes=torch.empty(0, 4), labels=torch.empty(0), scores=torch.empty(0)
        ),
    )
    true = true_annotations(sample, (4, 6), CLASSES).instances
    assert true.boxes.tolist() == [[2, 1, 5, 3], [0, 0, 2, 2]]
    assert true.crowd.tolist() == [False, True]
    assert len(true.objects) == 1
    assert true.masks is None  # since the crowd has no mask
    assert len(read_instances(sample, 'pred_instances')) == 0
    del sample.ignored_instances
    (mask,) = true_annotations(sample, (4, 6), CLASSES).instances.masks
    assert mask['size'] == [4, 6]


def test_rotated_boxes_are_not_drawn():
    sample = BaseDataElement(
        gt_instances=InstanceData(bboxes=torch.ones(2, 5), labels=torch.tensor([0, 1]))
    )
    assert true_annotations(sample, (4, 4), CLASSES).instances is None


def test_maps_are_read_and_instances_selected_by_score():
    sample = BaseDataElement(gt_sem_seg=PixelData(data=torch.ones(1, 3, 5)))
    assert true_annotations(sample, (3, 5), CLASSES).map.shape == (3, 5)
    instances = Instances(np.eye(2, 4), np.array([0, 1]), np.array([0.2, 0.8]))
    assert instances.above(0.5).labels.tolist() == [1]
