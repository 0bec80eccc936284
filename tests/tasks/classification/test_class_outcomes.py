"""Outcomes of classifiers: ranking, scores and pictures."""

import numpy as np
import pytest
import torch
from mmpretrain.structures import DataSample

from vit_plugin.report.outcomes import outcomes_class
from vit_plugin.tasks.classification.class_outcomes import ClassOutcomes

IMAGE = np.zeros((4, 4, 3), np.uint8)


def sample(true, scores):
    scores = torch.tensor(scores)
    return DataSample().set_gt_label(true).set_pred_score(scores).set_pred_label(scores.argmax())


def outcomes_of(*samples, classes=('cat', 'dog')):
    assert outcomes_class(samples[0]) is ClassOutcomes
    outcomes = ClassOutcomes(classes, len(samples))
    for position, data_sample in enumerate(samples):
        outcomes.add(position, data_sample)
    return outcomes


def test_images_are_ranked_by_cross_entropy():
    outcomes = outcomes_of(
        sample(0, [0.9, 0.1]), sample(1, [0.8, 0.2]), sample(1, [0.4, 0.6]), sample(0, [0.6, 0.4])
    )
    assert outcomes.errors() == pytest.approx(
        {0: -np.log(0.9), 1: -np.log(0.2), 2: -np.log(0.6), 3: -np.log(0.6)}
    )
    pages = outcomes.pages()
    assert pages['val_predictions'][1] == [0, 1, 2, 3]
    assert pages['val_worst'] == ('worst by loss', [1, 2])
    assert pages['val_best'] == ('best by loss', [0, 3])
    assert outcomes.confusion_matrix().tolist() == [[2, 0], [1, 1]]
    (wrong,), (right,) = (outcomes.panels(position, IMAGE) for position in (1, 0))
    assert (wrong.title, wrong.is_right) == ('cat 0.80; true: dog', False)
    assert (right.title, right.is_right) == ('cat 0.90', True)


def test_join_adds_outcomes_of_another_process():
    first, second = outcomes_of(sample(0, [0.9, 0.1])), ClassOutcomes(('cat', 'dog'), 2)
    second.add(1, sample(1, [0.9, 0.1]))
    first.join(second)
    assert first.confusion_matrix().tolist() == [[1, 0], [1, 0]]


def test_classes_without_names_are_numbered():
    outcomes = outcomes_of(sample(2, [0.1, 0.1, 0.8]), classes=())
    assert [row['name'] for row in outcomes.scores()['per_class']] == ['0', '1', '2']


def test_multi_label_images_have_no_confusion_matrix():
    scores = torch.tensor([0.9, 0.8, 0.1])
    data_sample = (
        DataSample()
        .set_gt_label([0, 2])
        .set_pred_score(scores)
        .set_pred_label(torch.tensor([0, 1]))
    )
    outcomes = outcomes_of(data_sample, classes=('cat', 'dog', 'cow'))
    assert outcomes.confusion_matrix() is None
    assert not list(outcomes.figures())
    assert [row['f1'] for row in outcomes.scores()['per_class']] == [100, 0, 0]
    assert outcomes.errors()[0] == pytest.approx(-np.log(0.9) - np.log(0.1) - np.log(0.2))
    assert outcomes.panels(0, IMAGE)[0].title == 'cat 0.90, dog 0.80; true: cat, cow'


def test_predictions_without_scores_are_named():
    data_sample = DataSample().set_gt_label(0).set_pred_label(1)
    outcomes = outcomes_of(data_sample)
    assert outcomes.panels(0, IMAGE)[0].title == 'dog; true: cat'
    assert outcomes.errors() == {0: 1}
