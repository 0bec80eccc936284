import numpy as np
import pytest

from anyfolder.pictures.palette import color_of
from vit_plugin.report.pictures.annotate import annotated
from vit_plugin.report.pictures.annotations import Annotations, Instances

BLACK = np.zeros((30, 40, 3), np.uint8)


@pytest.mark.parametrize('factor', [1, 4, 100])  # images of 40, 160 and 4,000 pixels
def test_lines_are_as_wide_on_small_as_on_large_images(factor):
    boxes = factor * np.array([[10.0, 10.0, 30.0, 25.0]])
    image = np.zeros((30 * factor, 40 * factor, 3), np.uint8)
    drawn = annotated(
        image,
        Annotations(image.shape[:2], instances=Instances(boxes, np.array([1]))),
        ['cat', 'dog'],
    )
    assert drawn.shape == (360, 480, 3)
    row = drawn[200]  # through both sides of the box
    assert [tuple(pixel) for pixel in row[row.any(axis=1)]] == [color_of(1)] * row.any(axis=1).sum()
    assert 4 <= row.any(axis=1).sum() <= 8
    assert np.flatnonzero(row.any(axis=1))[[0, -1]].tolist() == pytest.approx([120, 360], abs=2)


def test_a_map_has_the_colors_of_its_classes_and_none_where_it_has_no_class():
    classes = np.full((3, 4), 255)
    classes[:, 2:] = 2
    drawn = annotated(BLACK, Annotations((30, 40), map=classes))
    assert not drawn[:, :235].any()
    assert drawn[50, 400].tolist() == pytest.approx([0.45 * part for part in color_of(2)], abs=2)


def test_names_stay_in_the_image_and_give_way_to_many_boxes():
    corner = Instances(np.array([[0.0, 0.0, 8.0, 8.0]]), np.array([0]), np.array([0.5]))
    named = annotated(BLACK, Annotations((30, 40), instances=corner), ['cat'])
    plain = annotated(
        BLACK,
        Annotations(
            (30, 40),
            instances=Instances(np.repeat(corner.boxes, 99, axis=0), np.zeros(99, int)),
        ),
        ['cat'],
    )
    assert (named != 0).sum() > 1.5 * (plain != 0).sum()
