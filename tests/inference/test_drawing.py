"""Pictures of predictions: boxes, masks, labels, legends and maps over the image."""

import numpy as np
import pytest

from anyfolder.pictures.palette import color_of
from vit_plugin.inference.predictions import draw_prediction
from vit_plugin.tasks.detection.box_prediction import BoxPrediction
from vit_plugin.tasks.segmentation.map_prediction import MapPrediction


def test_boxes_and_masks_above_the_score_are_drawn():
    image = np.full((400, 600, 3), 128, np.uint8)
    masks = np.zeros((2, 400, 600), bool)
    masks[0, 110:190, 210:290] = masks[1, 300:, 500:] = True
    prediction = BoxPrediction(
        None,
        np.array([4, 1]),
        ['cat', 'dog'],
        np.array([0.9, 0.2]),
        np.array([[200.0, 100.0, 300.0, 200.0], [500.0, 300.0, 600.0, 400.0]]),
        masks,
    )
    picture = draw_prediction(image, prediction, 0.3)
    assert tuple(picture[150, 200]) == color_of(4)[::-1]  # the box, in BGR
    assert (picture[150, 250] != 128).any()  # the mask
    assert (picture[290:, 490:] == 128).all()
    assert (image == 128).all()


@pytest.mark.parametrize(
    ('shape', 'expected'), [((8, 16), (160, 320)), ((48, 160), (96, 320)), ((320, 90), (320, 90))]
)
def test_small_images_are_enlarged(shape, expected):
    prediction = BoxPrediction(
        None, np.array([0]), ['cat'], np.array([0.9]), np.array([[1.0, 1.0, 5.0, 5.0]])
    )
    assert draw_prediction(np.zeros((*shape, 3), np.uint8), prediction, 0.3).shape == (*expected, 3)


@pytest.mark.parametrize('side', [160, 4000])
def test_text_grows_with_the_image(side):
    prediction = BoxPrediction(
        None, np.array([0]), ['cat'], np.array([0.9]), np.array([[0.4, 0.4, 0.6, 0.6]]) * side
    )
    picture = draw_prediction(np.full((side, side, 3), 128, np.uint8), prediction, 0.3)
    rows = np.flatnonzero((picture != 128).any(axis=(1, 2)))
    label_height = 0.4 - rows[0] / len(picture)  # above the box, as a fraction of the image
    assert 0.02 < label_height < 0.1


def test_many_boxes_have_a_legend():
    side = 400
    corners = np.stack(
        np.meshgrid(np.arange(0, side, 20), np.arange(0, side, 20)), axis=-1
    ).reshape(-1, 2)
    prediction = BoxPrediction(
        None,
        np.zeros(400, int),
        ['cat'] * 400,
        np.full(400, 0.9),
        np.hstack((corners, corners + 9.0)),
    )
    picture = draw_prediction(np.full((side, side, 3), 128, np.uint8), prediction, 0.3)
    assert (picture[200:, 200:] == 128).all(axis=-1).mean() > 0.7  # labels would cover more
    assert (picture[:16, :30] != 128).any(axis=-1).all()  # the legend


def test_maps_are_tinted_by_class_except_the_background():
    labels = np.repeat(np.array([[3, 3, 300, 0]]), 100, axis=0).repeat(200, axis=1)
    prediction = MapPrediction(
        None,
        np.array([3, 300, 0]),
        ['sky', '300', 'Background'],
        np.array([0.5, 0.25, 0.25]),
        map=labels,
    )
    picture = draw_prediction(np.full((100, 800, 3), 128, np.uint8), prediction, 0.3)
    assert np.ptp(picture[80:95, 5:395], axis=(0, 1)).max() == 0
    assert (picture[90, 5] != picture[90, 500]).any()
    assert (picture[80:, 605:] == 128).all()
    assert tuple(picture[90, 400]) == color_of(300)[::-1]  # the outline


def test_labels_of_equal_boxes_do_not_cover_each_other():
    boxes = np.array([[100.0, 200.0, 300.0, 300.0]] * 3)
    prediction = BoxPrediction(None, np.arange(3), ['a'] * 3, np.array([0.9, 0.8, 0.7]), boxes)
    picture = draw_prediction(np.full((400, 400, 3), 128, np.uint8), prediction, 0.3)
    for label in range(3):  # each label has a background of its class's color
        assert (picture == color_of(label)[::-1]).all(axis=-1).sum() > 300
