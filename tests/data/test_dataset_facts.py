"""How many validation images are also training images."""

import numpy as np
import pytest

from vit_plugin.data import dataset_facts
from vit_plugin.data.dataset_facts import count_shared_images
from vit_plugin.engine.console import describe_validation_images


class Listed:
    """A data set of images that are given as paths or pixels."""

    def __init__(self, *images: str | np.ndarray) -> None:
        self.images = images

    def __len__(self) -> int:
        return len(self.images)

    def get_data_info(self, index: int) -> dict:
        image = self.images[index]
        return dict(img_path=image) if isinstance(image, str) else dict(img=image)


@pytest.mark.parametrize(
    ('val', 'words'),
    [
        (('c.png',), '1 held out to validate'),
        (('c.png', './a.png'), '2 to validate, 1 of them also trained on'),
        (('b.png', 'a.png'), '2 to validate, all of them also trained on'),
        (([],), '1 to validate'),  # neither a path nor pixels
    ],
)
def test_shared_images_are_counted(val, words):
    assert describe_validation_images(Listed(*val), Listed('a.png', 'b.png')) == words


def test_images_without_files_are_compared_by_their_pixels():
    light, dark = np.full((2, 2), 9), np.zeros((2, 2))
    assert count_shared_images(Listed(light), Listed(dark)) == 0
    assert count_shared_images(Listed(light, dark), Listed(dark)) == 1


def test_large_data_sets_are_not_compared(monkeypatch):
    monkeypatch.setattr(dataset_facts, 'MAX_SHARED_SAMPLES', 1)
    assert describe_validation_images(Listed('a', 'b'), Listed('a')) == '2 to validate'
    assert count_shared_images([1], [1]) is None
