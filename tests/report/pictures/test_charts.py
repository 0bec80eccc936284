"""The learning curve: its metrics, its smoothed loss and its axes."""

import numpy as np
import pytest

from vit_plugin.report.pictures import draw_learning_curve


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
