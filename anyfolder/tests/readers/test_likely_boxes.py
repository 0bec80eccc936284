"""Columns that may be boxes."""

import numpy as np

from anyfolder.readers.likely_boxes import EDGES, likely_box

SIZE = 40, 30  # width and height


def test_images_that_cannot_be_read_say_nothing_about_boxes():
    texts = np.array([['7', '1', '2', '30', '20']] * 10)
    assert likely_box(texts, [SIZE] * 10) == (1, EDGES[0])
    assert likely_box(texts, [*[SIZE] * 8, (0, 0), (0, 0)]) == (1, EDGES[0])
    assert likely_box(texts, [(0, 0)] * 10) is None
