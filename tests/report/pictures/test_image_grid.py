import numpy as np

from vit_plugin.report.pictures.annotations import Annotations
from vit_plugin.report.pictures.figure_files import save_figure
from vit_plugin.report.pictures.image_grid import LEGEND, Panel, draw_grid

IMAGE = np.zeros((6, 8, 3), np.uint8)


def test_titles_say_the_file_and_what_is_wrong():
    figure = draw_grid(
        [
            Panel(IMAGE, Annotations((6, 8)), 'cat', file='1.png'),
            Panel(IMAGE, Annotations((6, 8)), 'dog; true: cat', good=False),
        ],
        heading='worst',
    )
    titles = [axes.title for axes in figure.axes]
    assert [title.get_text() for title in titles] == ['1.png\ncat', 'dog; true: cat']
    assert [title.get_color() for title in titles] == ['black', 'firebrick']
    assert figure.get_suptitle() == 'worst'
    assert not figure.legends


def test_a_legend_has_the_classes_that_are_there():
    figure = draw_grid(
        [Panel(IMAGE, Annotations((6, 8), map=np.array([[0, 2], [255, 2]])), '')],
        ['sky', 'sea', 'land'],
    )
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ['sky', 'land']
    many = np.arange(2 * LEGEND).reshape(2, -1)
    figure = draw_grid([Panel(IMAGE, Annotations((6, 8), map=many), '')])
    assert figure.legends[0].get_texts()[-1].get_text() == f'and {LEGEND} more'


def test_a_name_that_the_font_lacks_is_no_warning(tmp_path):
    save_figure(draw_grid([Panel(IMAGE, Annotations((6, 8)), '猫')]), tmp_path / 'cat.png')
    assert (tmp_path / 'cat.png').stat().st_size > 1000
