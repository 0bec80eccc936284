from vit_plugin.visualization import draw_seeds


def test_every_seed_is_a_dot_and_every_mean_a_bar():
    axes, = draw_seeds({'lr 0.1': [1., 2., 3.], 'lr 0.2': [], 'lr 0.3': [4.]}, 'top1').axes
    dots, mean, single, _ = axes.get_lines()
    assert list(dots.get_xdata()) == [1., 2., 3.]
    assert list(mean.get_xdata()) == [2.]
    assert list(single.get_ydata()) == [2]
    assert [label.get_text() for label in axes.get_yticklabels()] == ['lr 0.1', 'lr 0.2', 'lr 0.3']
