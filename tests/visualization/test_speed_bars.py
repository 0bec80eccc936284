from vit_plugin.visualization import draw_speed_bars


def test_bars_are_relative_to_the_reference():
    figure = draw_speed_bars({'B/16': {'ours': 20., 'theirs': 10.}, 'R50+B/16': {'ours': 4.}}, 'images/s', 'ours')
    axes, = figure.axes
    assert [bar.get_width() for bar in axes.patches] == [1, 0.5, 1]
    assert [label.get_text() for label in axes.texts] == ['20', '10', '4']
    assert [label.get_text() for label in axes.get_yticklabels()] == ['B/16', 'R50+B/16']
