"""Detectors of small images find small objects in large images by slices."""

from collections.abc import Sequence

import cv2
import numpy as np
import pytest
from rejection import rejects

from vit_plugin.inference.predictions import Prediction
from vit_plugin.tasks.classification.class_prediction import ClassPrediction
from vit_plugin.tasks.detection.box_prediction import BoxPrediction

pytest.importorskip('supervision')
from vit_plugin.inference.slices import SlicedDetector

# Top left corners of objects of 16 pixels. Some are cut by the border of a slice of 128 pixels.
CORNERS = [(20, 30), (95, 40), (118, 118), (300, 150), (190, 10)]


def scene() -> np.ndarray:
    """A black image with white objects at CORNERS."""
    image = np.zeros((200, 320, 3), np.uint8)
    for x, y in CORNERS:
        image[y : y + 16, x : x + 16] = 255
    return image


def detect_bright(images: Sequence[np.ndarray]) -> list[Prediction]:
    """A detector of bright rectangles that finds nothing in images of more than 128 pixels.

    The score of an object is the part of its 16 x 16 pixels that the image shows.
    """
    predictions = []
    for image in images:
        _, _, stats, _ = cv2.connectedComponentsWithStats((image[..., 0] > 128).astype(np.uint8))
        stats = stats[1:] if max(image.shape) <= 128 else stats[:0]
        left, top, width, height, area = stats.T
        boxes = np.stack((left, top, left + width, top + height), axis=1).astype(np.float32)
        labels, masks = np.zeros(len(boxes), int), np.zeros((len(boxes), *image.shape[:2]), bool)
        for mask, (x1, y1, x2, y2) in zip(masks, boxes.astype(int), strict=True):
            mask[y1:y2, x1:x2] = True
        predictions.append(
            BoxPrediction(None, labels, ['box'] * len(boxes), area / 256, boxes, masks)
        )
    return predictions


@pytest.mark.parametrize('batch_size', [1, 4])
def test_each_object_is_found_once_at_its_position(batch_size):
    (prediction,) = SlicedDetector(detect_bright, 128, ['box'], batch_size=batch_size)([scene()])
    assert sorted(prediction.boxes[:, :2].astype(int).tolist()) == sorted(map(list, CORNERS))
    assert prediction.names == ['box'] * 5
    assert prediction.masks.shape == (5, 200, 320)
    boxes = prediction.boxes.astype(int)
    for mask, (left, top, right, bottom) in zip(prediction.masks, boxes, strict=True):
        assert mask[top:bottom, left:right].all()
        assert mask.sum() == (right - left) * (bottom - top)


def test_objects_found_only_in_the_whole_image_are_kept():
    def whole_image(images):
        """A box of the size of the image, but nothing in slices."""
        predictions = []
        for image in images:
            height, width = image.shape[:2]
            count = 1 if max(image.shape) > 128 else 0
            boxes = np.array([[0, 0, width, height]] * count, np.float32).reshape(-1, 4)
            masks, labels = np.ones((count, height, width), bool), np.zeros(count, int)
            predictions.append(
                BoxPrediction(None, labels, ['box'] * count, np.ones(count), boxes, masks)
            )
        return predictions

    (prediction,) = SlicedDetector(whole_image, 128, ['box'])([scene()])
    assert prediction.masks.shape == (1, 200, 320)
    assert prediction.masks.all()


def test_an_image_of_one_slice_is_predicted_once():
    predicted = []

    def detector(images):
        predicted.extend(images)
        return detect_bright(images)

    SlicedDetector(detector, 128, ['box'])([scene()[:100, :128]])
    assert len(predicted) == 1


def test_empty_images_have_no_predictions():
    (prediction,) = SlicedDetector(detect_bright, 128, ['box'])([np.zeros_like(scene())])
    assert prediction.text() == 'nothing'


def test_classifiers_raise():
    classes = ClassPrediction(None, np.array([0]), ['cat'], np.array([1.0]))
    with rejects('--slices is for detectors'):
        SlicedDetector(lambda images: [classes], 128, ['cat'])([scene()])
