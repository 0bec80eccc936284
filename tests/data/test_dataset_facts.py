"""Which images of a validation are trained on."""

import numpy as np
import pytest

from vit_plugin.data import dataset_facts
from vit_plugin.data.dataset_facts import trained_on
from vit_plugin.engine.console import validated_images


class Listed:
    """A data set that names its images, by their paths or by their pixels."""

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
def test_images_that_are_also_trained_on_are_said(val, words):
    assert validated_images(Listed(*val), Listed('a.png', 'b.png')) == words


def test_images_without_files_are_told_apart_by_their_pixels():
    light, dark = np.full((2, 2), 9), np.zeros((2, 2))
    assert trained_on(Listed(light), Listed(dark)) == 0
    assert trained_on(Listed(light, dark), Listed(dark)) == 1


def test_of_many_images_nothing_is_said(monkeypatch):
    monkeypatch.setattr(dataset_facts, 'COMPARED', 1)
    assert validated_images(Listed('a', 'b'), Listed('a')) == '2 to validate'
    assert trained_on([1], [1]) is None
