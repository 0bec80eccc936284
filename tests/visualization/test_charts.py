import numpy as np
import pytest

from vit_plugin.visualization import draw_budgets, draw_curves, draw_learning_curve, draw_seeds


def test_learning_curve_shows_every_metric(tmp_path):
    figure = draw_learning_curve(np.linspace(2, 1, 40), 10, {'top1': [(1, 50.), (4, 80.)], 'f1': [(4, 79.)]})
    left, right = figure.axes
    assert [line.get_label() for line in right.get_lines()] == ['top1: 80', 'f1: 79']
    np.testing.assert_allclose(left.get_lines()[0].get_xdata()[[0, -1]], [0.1, 4.])
    figure.savefig(tmp_path / 'curve.png')
    assert (tmp_path / 'curve.png').stat().st_size > 1000


def test_learning_curve_of_less_than_an_epoch():
    assert draw_learning_curve(np.ones(3), 10, {}).axes[0].get_lines()


def test_every_seed_is_a_dot_and_every_mean_a_bar():
    axes, = draw_seeds({'lr 0.1': [1., 2., 3.], 'lr 0.2': [], 'lr 0.3': [4.]}, 'top1').axes
    dots, mean, single, _ = axes.get_lines()
    assert list(dots.get_xdata()) == [1., 2., 3.]
    assert list(mean.get_xdata()) == [2.]
    assert list(single.get_ydata()) == [2]
    assert [label.get_text() for label in axes.get_yticklabels()] == ['lr 0.1', 'lr 0.2', 'lr 0.3']


def test_curves_of_one_name_share_a_color_and_their_time_is_in_minutes():
    axes, = draw_curves({'a': [[(60, 1.), (120, 2.)], [(30, 3.)]], 'b': [], 'c': [[(6, 1.)]]}, 'top1').axes
    lines = [line for line in axes.get_lines() if line.get_marker() == 'None']
    assert [list(line.get_xdata()) for line in lines] == [[1, 2], [0.5], [0.1]]
    assert lines[0].get_color() == lines[1].get_color() != lines[2].get_color()
    assert [line.get_label() for line in lines if not line.get_label().startswith('_')] == ['a', 'c']


def test_a_budgets_line_goes_through_the_means_in_order_of_time():
    axes, = draw_budgets({'a': [(240, [5., 7.]), (60, [2.]), (120, [])], 'b': [(60, [1.])]}, 'top1').axes
    line, short, long, *_ = axes.get_lines()
    assert line.get_xydata().tolist() == [[1, 2], [4, 6]]
    assert short.get_xydata().tolist() == [[1, 2]]
    assert long.get_xydata().tolist() == [[4, 5], [4, 7]]
    assert [line.get_label() for line in axes.get_lines() if not line.get_label().startswith('_')] == ['a', 'b']


@pytest.mark.parametrize('count', [20, 35, 36, 60, 200])
def test_long_names_stay_inside_the_picture(count):
    names = [f'{letter}_{"n" * count}' for letter in 'abc']
    names.append('_hidden')  # matplotlib's mark for what has no place in a legend
    for figure in (draw_seeds({name: [0.1] for name in names}, 'a metric with a long name'),
                   draw_curves({name: [[(60, 1.), (120, 2.)]] for name in names}, 'top1'),
                   draw_budgets({name: [(60, [2.])] for name in names}, 'top1')):
        figure.draw_without_rendering()
        axes, = figure.axes
        for part in (*figure.legends, *axes.get_yticklabels(), axes.xaxis.label):
            box = part.get_window_extent()
            assert 0 <= box.x0 < box.x1 <= figure.bbox.x1, part
