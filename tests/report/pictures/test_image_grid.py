"""Titles and legends of a page of images."""

import numpy as np

from vit_plugin.report.pictures.annotations import Annotations
from vit_plugin.report.pictures.figure_files import save_figure
from vit_plugin.report.pictures.image_grid import MAX_LEGEND_CLASSES, Panel, draw_grid

IMAGE = np.zeros((6, 8, 3), np.uint8)


def test_titles_name_the_file_and_wrong_ones_are_red():
    figure = draw_grid(
        [
            Panel(IMAGE, Annotations((6, 8)), 'cat', file='1.png'),
            Panel(IMAGE, Annotations((6, 8)), 'dog; true: cat', is_right=False),
        ],
        heading='worst',
    )
    titles = [axes.title for axes in figure.axes]
    assert [title.get_text() for title in titles] == ['1.png\ncat', 'dog; true: cat']
    assert [title.get_color() for title in titles] == ['black', 'firebrick']
    assert figure.get_suptitle() == 'worst'
    assert not figure.legends


def test_legends_list_the_classes_of_the_maps():
    figure = draw_grid(
        [Panel(IMAGE, Annotations((6, 8), map=np.array([[0, 2], [255, 2]])), '')],
        ['sky', 'sea', 'land'],
    )
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ['sky', 'land']
    many = np.arange(2 * MAX_LEGEND_CLASSES).reshape(2, -1)
    figure = draw_grid([Panel(IMAGE, Annotations((6, 8), map=many), '')])
    assert figure.legends[0].get_texts()[-1].get_text() == f'and {MAX_LEGEND_CLASSES} more'


def test_letters_that_the_font_lacks_raise_no_warning(tmp_path):
    save_figure(draw_grid([Panel(IMAGE, Annotations((6, 8)), '猫')]), tmp_path / 'cat.png')
    assert (tmp_path / 'cat.png').stat().st_size > 1000
