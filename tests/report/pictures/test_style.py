import numpy as np
import torch

from vit_plugin.report.pictures.style import (
    DPI,
    as_pixels,
    draw_over,
    new_figure,
)


def test_pixels_of_a_figure():
    figure = new_figure(2, 1)
    figure.patch.set_facecolor((1, 0, 0))
    pixels = as_pixels(figure)
    assert pixels.shape == (DPI, 2 * DPI, 3)
    assert pixels.dtype == np.uint8
    assert (pixels == (255, 0, 0)).all()


def test_maps_cover_the_padded_image_and_are_cut_to_it():
    image = np.full((20, 30, 3), 9, dtype=np.uint8)
    heat = torch.zeros(4, 4)
    heat[:, 3] = 1.0  # in the padding, from column 24 on
    figure = draw_over(image, [heat], ['head 0'], (32, 32))
    assert [axes.get_title() for axes in figure.axes] == ['image', 'head 0']
    drawn = figure.axes[1].images[1].get_array()
    assert drawn.shape == (20, 30)
    assert drawn[:, :16].max() == 0
    assert drawn[:, 29].min() > 0.9


def test_as_few_empty_places_as_possible():
    maps = 9 * [torch.rand(2, 2)]
    figure = draw_over(np.zeros((8, 8, 3), dtype=np.uint8), maps, list('abcdefghi'), (8, 8))
    assert len(figure.axes) == 10
