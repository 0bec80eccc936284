"""Scores by class, compared with those of scikit-learn, and their tables."""

import numpy as np
import pytest
from sklearn.metrics import precision_recall_fscore_support

from vit_plugin.report.pictures.class_scores import (
    class_scores,
    count_samples,
    map_scores,
    scores_as_markdown,
)


def test_scores_equal_scikit_learns():
    draw = np.random.default_rng(0)
    true, predicted = draw.integers(0, 4, 200), draw.integers(0, 4, 200)
    matrix = np.zeros((4, 4), dtype=int)
    np.add.at(matrix, (true, predicted), 1)
    scores = class_scores(count_samples(matrix), ['a', 'b', 'c', 'd'])
    for average, average_scores in (('macro', scores['macro']), ('micro', scores['overall'])):
        expected = precision_recall_fscore_support(true, predicted, average=average)[:3]
        assert list(average_scores.values()) == pytest.approx(
            [100 * value for value in expected], abs=1e-4
        )
    expected = np.transpose(precision_recall_fscore_support(true, predicted))
    for row, (precision, recall, f1, samples) in zip(scores['per_class'], expected, strict=True):
        assert [row['precision'], row['recall'], row['f1']] == pytest.approx(
            [100 * precision, 100 * recall, 100 * f1], abs=1e-4
        )
        assert row['samples'] == samples


def test_classes_that_never_occur_change_no_mean():
    matrix = np.array([[3, 1, 0], [1, 5, 0], [0, 0, 0]])
    scores = class_scores(count_samples(matrix))
    assert scores['macro'] == class_scores(count_samples(matrix[:2, :2]))['macro']
    assert scores['per_class'][2] == dict(name='2', precision=0, recall=0, f1=0, samples=0)


def test_the_table_ends_with_the_means():
    lines = scores_as_markdown(
        class_scores(count_samples(np.array([[3, 1], [0, 4]])), ['cat', 'dog'])
    ).splitlines()
    assert lines[2] == '| cat | 100.00 | 75.00 | 85.71 | 4 |'
    assert lines[-1] == '| **overall** | 87.50 | 87.50 | 87.50 | 8 |'


def test_multi_label_scores_equal_scikit_learns():
    draw = np.random.default_rng(0)
    true, predicted = draw.random((2, 50, 3)) > 0.5
    scores = class_scores(np.stack(((true & predicted).sum(0), true.sum(0), predicted.sum(0))))
    for average, average_scores in (('macro', scores['macro']), ('micro', scores['overall'])):
        expected = precision_recall_fscore_support(true, predicted, average=average)[:3]
        assert list(average_scores.values()) == pytest.approx(
            [100 * value for value in expected], abs=1e-4
        )


def test_scores_of_maps():
    scores = map_scores(np.array([[6, 2, 0], [1, 3, 0], [0, 0, 0]]), ['sky', 'sea', 'land'])
    assert scores['per_class'] == [
        dict(name='sky', IoU=66.6667, Acc=75.0, pixels=8),
        dict(name='sea', IoU=50.0, Acc=75.0, pixels=4),
        dict(name='land', IoU=None, Acc=None, pixels=0),
    ]
    assert scores['macro'] == dict(IoU=58.3333, Acc=75.0)
    assert scores['overall'] == dict(Acc=75.0)
    assert scores_as_markdown(scores).splitlines()[-3:] == [
        '| land |  |  | 0 |',
        '| **macro** | 58.33 | 75.00 |  |',
        '| **overall** |  | 75.00 | 12 |',
    ]
