"""Titles and legends of a page of images."""

import numpy as np

from vit_plugin.report.pictures.annotations import Annotations, Instances
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


def test_names_of_files_with_combining_marks_are_not_reversed():
    """Some systems store é as e and an accent, which belongs to the letter before it."""
    figure = draw_grid([Panel(IMAGE, Annotations((6, 8)), '', file='e\u0301a.png')])
    assert figure.axes[0].title.get_text() == '\u00e9a.png'
    figure = draw_grid([Panel(IMAGE, Annotations((6, 8)), '', file=f'{"0" * 90}1.png')])
    assert figure.axes[0].title.get_text() == f'…{"0" * 38}1.png'


def test_boxes_of_the_class_with_the_number_of_ignored_pixels_are_in_the_legend():
    boxes = Instances(np.array([[0.0, 0.0, 4.0, 4.0]]), np.array([255]))
    figure = draw_grid(
        [Panel(IMAGE, Annotations((6, 8), instances=boxes), '')], [f'c{i}' for i in range(300)]
    )
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ['c255']
