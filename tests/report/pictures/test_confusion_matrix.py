"""Titles, numbers and names of confusion matrices with few and many classes."""

import numpy as np
import pytest

from vit_plugin.report.pictures import draw_confusion_matrix


def test_confusion_matrix_counts_and_names():
    figure = draw_confusion_matrix(np.array([[3, 1], [0, 1236]]), ['cat', 'dog'])
    axes = figure.axes[0]
    assert axes.get_title() == '99.92 % of 1,240 right'
    assert sorted(text.get_text() for text in axes.texts) == ['1', '1,236', '3']
    assert [label.get_text() for label in axes.get_yticklabels()] == ['cat', 'dog']


@pytest.mark.parametrize('count', [21, 61, 1003])
def test_the_most_confused_classes_are_listed_if_there_are_many(count):
    matrix = 9 * np.eye(count, dtype=int)
    matrix[3, 7], matrix[5, 2] = 4, 6
    figure = draw_confusion_matrix(
        matrix, [f'a class of a very long name {i}'[::-1] for i in range(count)]
    )
    axes = figure.axes[0]
    assert not axes.texts
    listed = figure.texts[0].get_text().splitlines()
    assert [line.rpartition(': ')[2] for line in listed[2:]] == ['6', '4']
    assert listed[2].startswith('5 eman')
    if count <= 60:
        assert len(axes.get_yticklabels()) == count
    else:  # only some numbers
        assert len(axes.get_yticklabels()) < 20
