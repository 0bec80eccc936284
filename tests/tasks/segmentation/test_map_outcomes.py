"""Outcomes of segmentors: scores, ranking and pictures."""

import numpy as np
import pytest
import torch
from mmengine.structures import BaseDataElement, PixelData

from vit_plugin.report.outcomes import outcomes_class
from vit_plugin.tasks.segmentation.map_outcomes import MapOutcomes

CLASSES = ('sky', 'sea', 'land')


def sample(true, predicted):
    true, predicted = (PixelData(data=torch.tensor(values)[None]) for values in (true, predicted))
    return BaseDataElement(gt_sem_seg=true, pred_sem_seg=predicted)


def test_iou_is_computed_for_classes_and_images():
    outcomes = MapOutcomes(CLASSES, 3)
    samples = [
        sample([[0, 0], [1, 255]], [[0, 1], [1, 1]]),
        sample([[2, 2]], [[2, 2]]),
        sample([[255]], [[0]]),
    ]
    assert outcomes_class(samples[0]) is MapOutcomes
    for position, data_sample in enumerate(samples):
        outcomes.add(position, data_sample)
    # Both classes of the first image have an IoU of 1/2; the third image has no class.
    assert outcomes.errors() == {0: 50, 1: 0}
    assert outcomes.confusion_matrix().tolist() == [[1, 1, 0], [0, 1, 0], [0, 0, 2]]
    assert [row['IoU'] for row in outcomes.scores()['per_class']] == [50, 50, 100]
    assert outcomes.pages()['val_worst'][1] == [0]
    true, predicted, errors = outcomes.panels(0, np.zeros((2, 2, 3), np.uint8))
    assert predicted.title == 'predicted, mIoU 50.0 %'
    assert true.annotations.map.tolist() == [[0, 0], [1, 255]]
    assert errors.title == '33.3 % are wrong'
    assert errors.annotations.errors.tolist() == [[0, 3], [0, 0]]


def test_error_map_tells_missed_invented_and_confused_pixels():
    outcomes = MapOutcomes(('background', 'disc', 'ring'), 1)
    outcomes.add(0, sample([[0, 0, 1, 1, 1, 255]], [[0, 1, 0, 1, 2, 1]]))
    errors = outcomes.panels(0, np.zeros((1, 6, 3), np.uint8))[-1].annotations.errors
    assert errors.tolist() == [[0, 2, 1, 0, 3, 0]]


def test_scores_equal_those_of_mmsegmentation():
    pytest.importorskip('mmseg')
    from mmseg.evaluation import IoUMetric

    rng = torch.Generator().manual_seed(0)
    metric, outcomes = IoUMetric(), MapOutcomes(CLASSES, 4)
    metric.dataset_meta = dict(classes=CLASSES)
    for position in range(4):
        true, predicted = torch.randint(0, 3, (2, 5, 7), generator=rng)
        data_sample = sample(true.tolist(), predicted.tolist())
        outcomes.add(position, data_sample)
        maps = {name: data_sample.get(name).to_dict() for name in ('gt_sem_seg', 'pred_sem_seg')}
        metric.process({}, [data_sample.to_dict() | maps])
    expected, scores = metric.compute_metrics(metric.results), outcomes.scores()
    assert [
        scores['overall']['Acc'],
        scores['macro']['IoU'],
        scores['macro']['Acc'],
    ] == pytest.approx([expected[name] for name in ('aAcc', 'mIoU', 'mAcc')], abs=0.01)


def test_few_maps_are_kept_for_drawing():
    size = 200
    whole, parts = MapOutcomes(CLASSES, size), [MapOutcomes(CLASSES, size) for _ in range(2)]
    for position in range(size):
        correct = position * 37 % size  # pixels of the 200, a different number in each image
        data_sample = sample([[0] * size], [[0] * correct + [1] * (size - correct)])
        for outcomes in (whole, parts[position % 2]):
            outcomes.add(position, data_sample)
    assert len(whole._seen) < 80
    parts[0].join(parts[1])
    assert parts[0].pages() == whole.pages()
    assert parts[0].confusion_matrix().tolist() == whole.confusion_matrix().tolist()
    image = np.zeros((1, size, 3), np.uint8)
    for _, positions in whole.pages().values():
        assert all(
            whole.panels(position, image) and parts[0].panels(position, image)
            for position in positions
        )


def test_large_maps_are_reduced():
    outcomes = MapOutcomes(CLASSES, 1)
    outcomes.add(
        0,
        sample(
            torch.zeros(100, 4000, dtype=torch.long).tolist(), torch.ones(100, 4000).long().tolist()
        ),
    )
    assert outcomes._seen[0].true.shape == (12, 445)
