import numpy as np

from vit_plugin.visualization import draw_confusion_matrix, draw_learning_curve


def test_learning_curve_shows_every_metric(tmp_path):
    figure = draw_learning_curve(np.linspace(2, 1, 40), 10, {'top1': [(1, 50.), (4, 80.)], 'f1': [(4, 79.)]})
    left, right = figure.axes
    assert [line.get_label() for line in right.get_lines()] == ['top1: 80', 'f1: 79']
    np.testing.assert_allclose(left.get_lines()[0].get_xdata()[[0, -1]], [0.1, 4.])
    figure.savefig(tmp_path / 'curve.png')
    assert (tmp_path / 'curve.png').stat().st_size > 1000


def test_learning_curve_of_less_than_an_epoch():
    assert draw_learning_curve(np.ones(3), 10, {}).axes[0].get_lines()


def test_confusion_matrix_counts_and_names():
    figure = draw_confusion_matrix(np.array([[3, 1], [0, 4]]), ['cat', 'dog'])
    axes = figure.axes[0]
    assert axes.get_title() == '87.50 % of 8 right'
    assert sorted(text.get_text() for text in axes.texts) == ['1', '3', '4']
    assert [label.get_text() for label in axes.get_yticklabels()] == ['cat', 'dog']


def test_many_classes_are_not_written_out():
    assert not draw_confusion_matrix(np.eye(100, dtype=int)).axes[0].texts
