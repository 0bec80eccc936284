"""Maps of patches over an image: their place, the panels and the titles."""

from itertools import pairwise

import numpy as np
import torch

from vit_plugin.report.pictures.overlay import draw_over


def test_maps_cover_the_padded_image_and_are_cropped_to_it():
    image = np.full((20, 30, 3), 9, dtype=np.uint8)
    heat = torch.zeros(4, 4)
    heat[:, 3] = 1.0  # columns 24 to 31, of which 30 and 31 are padding
    figure = draw_over(image, [heat], ['head 0'], (32, 32))
    assert [axes.get_title() for axes in figure.axes] == ['image', 'head 0']
    drawn = figure.axes[1].images[1].get_array()
    assert drawn.shape == (20, 30)
    assert drawn[:, :16].max() == 0
    assert drawn[:, 29].min() > 0.9


def test_ten_panels_leave_no_empty_panel():
    maps = 9 * [torch.rand(2, 2)]
    figure = draw_over(np.zeros((8, 8, 3), dtype=np.uint8), maps, list('abcdefghi'), (8, 8))
    assert len(figure.axes) == 10  # with the image


def test_long_titles_are_wrapped_above_their_map():
    titles = 4 * ['block 4, head 1, mean of patches']
    figure = draw_over(np.zeros((8, 12, 3), np.uint8), 4 * [torch.rand(2, 2)], titles, (8, 12))
    figure.draw_without_rendering()
    boxes = [axes.title.get_window_extent() for axes in figure.axes]
    assert not any(box.overlaps(next_box) for box, next_box in pairwise(boxes))
    assert max(box.y1 for box in boxes) <= figure.bbox.y1
