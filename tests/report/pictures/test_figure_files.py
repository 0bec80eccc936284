"""A figure as an array of pixels."""

import numpy as np

from vit_plugin.report.pictures.figure_files import as_pixels
from vit_plugin.report.pictures.style import DPI, new_figure


def test_pixels_of_a_figure():
    figure = new_figure(2, 1)
    figure.patch.set_facecolor((1, 0, 0))
    pixels = as_pixels(figure)
    assert pixels.shape == (DPI, 2 * DPI, 3)
    assert pixels.dtype == np.uint8
    assert (pixels == (255, 0, 0)).all()
