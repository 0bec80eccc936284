import numpy as np
import pytest
import torch
from mmpretrain.structures import DataSample

from vit_plugin.report.outcomes import outcomes_kind
from vit_plugin.tasks.classification.class_outcomes import ClassOutcomes

IMAGE = np.zeros((4, 4, 3), np.uint8)


def sample(true, scores):
    scores = torch.tensor(scores)
    return DataSample().set_gt_label(true).set_pred_score(scores).set_pred_label(scores.argmax())


def outcomes(*samples, classes=('cat', 'dog')):
    assert outcomes_kind(samples[0]) is ClassOutcomes
    found = ClassOutcomes(classes, len(samples))
    for position, one in enumerate(samples):
        found.add(position, one)
    return found


def test_the_worst_image_has_the_largest_cross_entropy():
    found = outcomes(
        sample(0, [0.9, 0.1]), sample(1, [0.8, 0.2]), sample(1, [0.4, 0.6]), sample(0, [0.6, 0.4])
    )
    assert found.errors() == pytest.approx(
        {0: -np.log(0.9), 1: -np.log(0.2), 2: -np.log(0.6), 3: -np.log(0.6)}
    )
    pages = found.pages()
    assert pages['val_predictions'][1] == [0, 1, 2, 3]
    assert pages['val_worst'] == ('worst by loss', [1, 2])
    assert pages['val_best'] == ('best by loss', [0, 3])
    assert found.confusion_matrix().tolist() == [[2, 0], [1, 1]]
    (wrong,), (right,) = (found.panels(position, IMAGE) for position in (1, 0))
    assert (wrong.title, wrong.good) == ('cat 0.80; true: dog', False)
    assert (right.title, right.good) == ('cat 0.90', True)


def test_processes_are_joined():
    parts = [outcomes(sample(0, [0.9, 0.1])), ClassOutcomes(('cat', 'dog'), 2)]
    parts[1].add(1, sample(1, [0.9, 0.1]))
    parts[0].join(parts[1])
    assert parts[0].confusion_matrix().tolist() == [[1, 0], [1, 0]]


def test_without_names_classes_are_numbers():
    found = outcomes(sample(2, [0.1, 0.1, 0.8]), classes=())
    assert [row['name'] for row in found.scores()['per_class']] == ['0', '1', '2']


def test_several_classes_in_an_image():
    scores = torch.tensor([0.9, 0.8, 0.1])
    one = (
        DataSample()
        .set_gt_label([0, 2])
        .set_pred_score(scores)
        .set_pred_label(torch.tensor([0, 1]))
    )
    found = outcomes(one, classes=('cat', 'dog', 'cow'))
    assert found.confusion_matrix() is None
    assert not list(found.figures())
    assert [row['f1'] for row in found.scores()['per_class']] == [100, 0, 0]
    assert found.errors()[0] == pytest.approx(-np.log(0.9) - np.log(0.1) - np.log(0.2))
    assert found.panels(0, IMAGE)[0].title == 'cat 0.90, dog 0.80; true: cat, cow'
