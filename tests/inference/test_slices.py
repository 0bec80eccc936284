"""Small objects of large images, found by what sees only small images."""

from collections.abc import Sequence

import cv2
import numpy as np
import pytest
from rejection import rejects

from vit_plugin.inference.predictions import Prediction
from vit_plugin.tasks.classification.class_prediction import ClassPrediction
from vit_plugin.tasks.detection.box_prediction import BoxPrediction

pytest.importorskip('supervision')
from vit_plugin.inference.slices import Sliced

# Some are cut by a slice of 128 pixels.
CORNERS = [(20, 30), (95, 40), (118, 118), (300, 150), (190, 10)]


def scene() -> np.ndarray:
    image = np.zeros((200, 320, 3), np.uint8)
    for x, y in CORNERS:
        image[y : y + 16, x : x + 16] = 255
    return image


def bright(images: Sequence[np.ndarray]) -> list[Prediction]:
    """A detector of bright rectangles, which finds nothing in images of more than 128 pixels."""
    found = []
    for image in images:
        _, _, stats, _ = cv2.connectedComponentsWithStats((image[..., 0] > 128).astype(np.uint8))
        stats = stats[1:] if max(image.shape) <= 128 else stats[:0]
        left, top, width, height, area = stats.T
        boxes = np.stack((left, top, left + width, top + height), axis=1).astype(np.float32)
        labels, masks = np.zeros(len(boxes), int), np.zeros((len(boxes), *image.shape[:2]), bool)
        for mask, (x1, y1, x2, y2) in zip(masks, boxes.astype(int), strict=True):
            mask[y1:y2, x1:x2] = True
        found.append(BoxPrediction(None, labels, ['box'] * len(boxes), area / 256, boxes, masks))
    return found


@pytest.mark.parametrize('batch_size', [1, 4])
def test_each_object_is_found_once_where_it_is(batch_size):
    (found,) = Sliced(bright, 128, ['box'], batch_size=batch_size)([scene()])
    assert sorted(found.boxes[:, :2].astype(int).tolist()) == sorted(map(list, CORNERS))
    assert found.names == ['box'] * 5
    assert found.masks.shape == (5, 200, 320)
    for mask, (left, top, right, bottom) in zip(found.masks, found.boxes.astype(int), strict=True):
        assert mask[top:bottom, left:right].all()
        assert mask.sum() == (right - left) * (bottom - top)


def test_what_is_found_in_the_whole_alone_is_kept():
    def whole(images):
        found = []
        for image in images:
            count, (height, width) = int(max(image.shape) > 128), image.shape[:2]
            boxes = np.array([[0, 0, width, height]] * count, np.float32).reshape(-1, 4)
            masks, labels = np.ones((count, height, width), bool), np.zeros(count, int)
            found.append(BoxPrediction(None, labels, ['box'] * count, np.ones(count), boxes, masks))
        return found

    (found,) = Sliced(whole, 128, ['box'])([scene()])
    assert found.masks.shape == (1, 200, 320)
    assert found.masks.all()


def test_an_image_of_one_slice_is_asked_about_once():
    asked = []
    Sliced(lambda images: asked.extend(images) or bright(images), 128, ['box'])(
        [scene()[:100, :128]]
    )
    assert len(asked) == 1


def test_nothing_is_found_in_nothing():
    (found,) = Sliced(bright, 128, ['box'])([np.zeros_like(scene())])
    assert found.text() == 'nothing'


def test_a_classifier_is_refused():
    classes = ClassPrediction(None, np.array([0]), ['cat'], np.array([1.0]))
    with rejects('--slices is for detectors'):
        Sliced(lambda images: [classes], 128, ['cat'])([scene()])
