import numpy as np
import pytest
import torch
from mmengine.structures import BaseDataElement, PixelData

from vit_plugin.report.outcomes import outcomes_kind
from vit_plugin.tasks.panoptic.panoptic_outcomes import PanopticOutcomes
from vit_plugin.tasks.segmentation.map_outcomes import MapOutcomes

CLASSES = ('sky', 'sea', 'land')


def sample(true, predicted):
    true, predicted = (PixelData(data=torch.tensor(values)[None]) for values in (true, predicted))
    return BaseDataElement(gt_sem_seg=true, pred_sem_seg=predicted)


def test_iou_of_classes_and_images():
    found = MapOutcomes(CLASSES, 3)
    samples = [
        sample([[0, 0], [1, 255]], [[0, 1], [1, 1]]),
        sample([[2, 2]], [[2, 2]]),
        sample([[255]], [[0]]),
    ]
    assert outcomes_kind(samples[0]) is MapOutcomes
    for position, one in enumerate(samples):
        found.add(position, one)
    assert found.errors() == {0: 50, 1: 0}  # IoU 1/2 of both classes; the third image has no class
    assert found.confusion_matrix().tolist() == [[1, 1, 0], [0, 1, 0], [0, 0, 2]]
    assert [row['IoU'] for row in found.scores()['per_class']] == [50, 50, 100]
    assert found.pages()['val_worst'][1] == [0]
    true, predicted, errors = found.panels(0, np.zeros((2, 2, 3), np.uint8))
    assert predicted.title == 'predicted, mIoU 50.0 %'
    assert true.annotations.map.tolist() == [[0, 0], [1, 255]]
    assert errors.title == '33.3 % are wrong'
    assert errors.annotations.errors.tolist() == [[0, 3], [0, 0]]


def test_errors_are_missed_invented_or_of_another_class():
    found = MapOutcomes(('background', 'disc', 'ring'), 1)
    found.add(0, sample([[0, 0, 1, 1, 1, 255]], [[0, 1, 0, 1, 2, 1]]))
    errors = found.panels(0, np.zeros((1, 6, 3), np.uint8))[-1].annotations.errors
    assert errors.tolist() == [[0, 2, 1, 0, 3, 0]]


def test_scores_are_those_of_mmsegmentation():
    pytest.importorskip('mmseg')
    from mmseg.evaluation import IoUMetric

    draw = torch.Generator().manual_seed(0)
    metric, found = IoUMetric(), MapOutcomes(CLASSES, 4)
    metric.dataset_meta = dict(classes=CLASSES)
    for position in range(4):
        true, predicted = torch.randint(0, 3, (2, 5, 7), generator=draw)
        one = sample(true.tolist(), predicted.tolist())
        found.add(position, one)
        metric.process(
            {},
            [
                one.to_dict()
                | {name: one.get(name).to_dict() for name in ('gt_sem_seg', 'pred_sem_seg')}
            ],
        )
    expected, scores = metric.compute_metrics(metric.results), found.scores()
    assert [
        scores['overall']['Acc'],
        scores['macro']['IoU'],
        scores['macro']['Acc'],
    ] == pytest.approx([expected[name] for name in ('aAcc', 'mIoU', 'mAcc')], abs=0.01)


def test_only_maps_that_may_be_drawn_are_kept():
    size = 200
    whole, parts = MapOutcomes(CLASSES, size), [MapOutcomes(CLASSES, size) for _ in range(2)]
    for position in range(size):
        right = position * 37 % size  # of 200 pixels
        one = sample([[0] * size], [[0] * right + [1] * (size - right)])
        for found in (whole, parts[position % 2]):
            found.add(position, one)
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


def test_large_maps_are_kept_small():
    found = MapOutcomes(CLASSES, 1)
    found.add(
        0,
        sample(
            torch.zeros(100, 4000, dtype=torch.long).tolist(), torch.ones(100, 4000).long().tolist()
        ),
    )
    assert found._seen[0].true.shape == (12, 445)


def test_segments_count_by_their_classes_and_nothing_is_wrong():
    found = PanopticOutcomes(CLASSES, 1)
    true, predicted = (
        PixelData(sem_seg=torch.tensor([[row]])) for row in ([0, 0, 1, 255], [0, 1000, 3, 2000])
    )
    one = BaseDataElement(gt_sem_seg=true, pred_panoptic_seg=predicted)
    assert outcomes_kind(one) is PanopticOutcomes
    found.add(0, one)
    assert [row['IoU'] for row in found.scores()['per_class']] == [100, 0, None]
    assert found.errors() == {0: 50}
    _, drawn, errors = found.panels(0, np.zeros((1, 4, 3), np.uint8))
    assert drawn.annotations.map.tolist() == [[0, 0, 255, 0]]
    assert errors.annotations.errors.tolist() == [[0, 0, 1, 0]]
