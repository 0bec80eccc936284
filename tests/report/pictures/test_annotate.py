"""Boxes, label maps and class names as they are drawn on an image."""

import numpy as np
import pytest

from anyfolder.pictures.palette import color_of
from vit_plugin.report.pictures.annotate import draw_annotations
from vit_plugin.report.pictures.annotations import Annotations, Instances

BLACK = np.zeros((30, 40, 3), np.uint8)


@pytest.mark.parametrize('factor', [1, 4, 100])  # images of 40, 160 and 4,000 pixels
def test_lines_have_the_same_width_for_all_image_sizes(factor):
    boxes = factor * np.array([[10.0, 10.0, 30.0, 25.0]])
    image = np.zeros((30 * factor, 40 * factor, 3), np.uint8)
    drawn = draw_annotations(
        image,
        Annotations(image.shape[:2], instances=Instances(boxes, np.array([1]))),
        ['cat', 'dog'],
    )
    assert drawn.shape == (360, 480, 3)
    row = drawn[200]  # through both sides of the box
    columns = np.flatnonzero(row.any(axis=1))
    assert {tuple(pixel) for pixel in row[columns]} == {color_of(1)}
    assert 4 <= len(columns) <= 8
    assert columns[[0, -1]].tolist() == pytest.approx([120, 360], abs=2)


def test_maps_have_the_colors_of_classes_and_none_without_a_class():
    classes = np.full((3, 4), 255)
    classes[:, 2:] = 2
    drawn = draw_annotations(BLACK, Annotations((30, 40), map=classes))
    assert not drawn[:, :235].any()
    assert drawn[50, 400].tolist() == pytest.approx([0.45 * part for part in color_of(2)], abs=2)


def test_names_are_drawn_within_the_image_unless_there_are_many_boxes():
    corner = Instances(np.array([[0.0, 0.0, 8.0, 8.0]]), np.array([0]), np.array([0.5]))
    named = draw_annotations(BLACK, Annotations((30, 40), instances=corner), ['cat'])
    plain = draw_annotations(
        BLACK,
        Annotations(
            (30, 40),
            instances=Instances(np.repeat(corner.boxes, 99, axis=0), np.zeros(99, int)),
        ),
        ['cat'],
    )
    assert (named != 0).sum() > 1.5 * (plain != 0).sum()
