"""Learning curves and detection curves: their lines, labels, colors and axes."""

import numpy as np
import pytest

from anyfolder.pictures.palette import hex_of
from vit_plugin.report.pictures import draw_learning_curve
from vit_plugin.report.pictures.charts import (
    MAX_NAMED_CURVES,
    DetectionCurve,
    draw_detection_curves,
)


def test_learning_curve_shows_every_metric(tmp_path):
    figure = draw_learning_curve(
        np.linspace(2, 1, 40), 10, {'top1': [(1, 50.0), (4, 80.0)], 'f1': [(4, 79.0)]}
    )
    above, below = figure.axes
    assert [line.get_label() for line in below.get_lines()] == ['top1: 80.00', 'f1: 79.00']
    raw, mean = above.get_lines()
    np.testing.assert_allclose(raw.get_xdata()[[0, -1]], [0.1, 4.0])
    # The mean of a linear loss equals the loss: it does not lag behind.
    loss = np.interp(mean.get_xdata(), raw.get_xdata(), raw.get_ydata())
    np.testing.assert_allclose(mean.get_ydata(), loss, atol=1e-9)
    figure.savefig(tmp_path / 'curve.png')
    assert (tmp_path / 'curve.png').stat().st_size > 1000


def test_the_mean_of_few_epochs_follows_the_loss():
    loss = np.exp(-np.arange(104) / 20)
    raw, mean = draw_learning_curve(loss, 52, {}).axes[0].get_lines()
    expected = np.interp(mean.get_xdata(), raw.get_xdata(), raw.get_ydata())
    np.testing.assert_allclose(mean.get_ydata(), expected, rtol=0.03)


def test_learning_curve_is_drawn_for_less_than_an_epoch():
    assert draw_learning_curve(np.ones(3), 10, {}).axes[0].get_lines()


@pytest.mark.parametrize('bad', [slice(3, 5), slice(None)])
def test_learning_curve_ignores_losses_that_are_not_finite(bad):
    loss = np.linspace(2, 1, 40)
    loss[bad] = np.nan
    above, _ = draw_learning_curve(loss, 10, {}).axes
    assert np.isfinite(above.get_ylim()).all()


CURVE = DetectionCurve(*(np.linspace(0, 100, 5) for _ in range(4)), ap50=50.0)


def test_class_keeps_its_color_if_another_has_no_objects():
    """Also a class that is called like the mean of all."""
    figure = draw_detection_curves(CURVE, {0: CURVE, 2: CURVE}, ['all', 'cat', 'dog'], 0.5)
    for axes in figure.axes:
        mean, first, third = axes.get_lines()[:3]
        assert (first.get_color(), third.get_color()) == (hex_of(0), hex_of(2))
        assert mean.get_color() not in (hex_of(0), hex_of(2))
        assert [line.get_label().split()[0] for line in (mean, first, third)] == [
            'all',
            'all',
            'dog',
        ]


def test_many_classes_are_not_named():
    number = MAX_NAMED_CURVES + 1
    curves = dict.fromkeys(range(number), CURVE)
    left, _ = draw_detection_curves(CURVE, curves, ['a'] * number, 0.5).axes
    assert [text.get_text() for text in left.get_legend().get_texts()] == ['all  AP50 50.0']
