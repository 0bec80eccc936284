"""Pictures and class maps at the size of reports and sheets."""

import numpy as np
import pytest

from anyfolder.pictures.scaled_pictures import resized, scaled


def test_resized_takes_the_nearest_pixels():
    assert resized(np.array([[1, 2], [3, 4]]), (4, 2)).tolist() == [[1, 1, 2, 2], [3, 3, 4, 4]]


@pytest.mark.parametrize(('shape', 'shown'), [((3, 4), (360, 480)), ((4000, 10), (480, 1))])
def test_longer_side_is_scaled_to_480_pixels(shape, shown):
    image = np.full((*shape, 3), 7, np.uint8)
    assert scaled(image).shape == (*shown, 3)
    assert (scaled(image) == 7).all()
