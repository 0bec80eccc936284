"""Charts of the counts of classes, and of the places and sizes of boxes."""

import numpy as np
import pytest

from vit_plugin.report.pictures.label_charts import draw_labels


def test_bars_by_class_and_split():
    counts = dict(train=np.array([12_345, 999_999]), validation=np.array([7_000, 2_500_000]))
    figure = draw_labels(counts, ['cat', 'dog'], 'pixels', 'some')
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.texts] == ['12.3k', '1M', '7,000', '2.5M']
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ['train', 'validation']


def test_few_images_have_whole_numbers_as_ticks():
    figure = draw_labels(dict(train=np.array([3, 5]), validation=np.array([1, 2])), 'ab', 'images')
    ticks = figure.axes[0].get_xticks()
    assert (ticks == ticks.round()).all()


def test_positions_and_sizes_of_boxes():
    boxes = np.array([[0.1, 0.2, 0.3, 0.6], [0.1, 0.2, 0.3, 0.6]])
    figure = draw_labels(dict(train=np.array([2])), ['cat'], 'objects', boxes=boxes)
    _, centers, sizes = figure.axes
    x, y = 0.2, 0.4  # both the center and the size of the boxes
    for axes in (centers, sizes):
        counts = axes.collections[0].get_array().reshape(50, 50)  # rows are the second coordinate
        assert counts.max() == 2
        assert (np.argwhere(counts == 2)[0] / 50).tolist() == pytest.approx([y, x], abs=0.021)


def test_counts_of_many_classes_are_drawn_as_a_line():
    figure = draw_labels(dict(train=np.arange(100)), [f'{i}' for i in range(100)], 'images')
    (line,) = figure.axes[0].get_lines()
    assert line.get_ydata()[0] == 99
