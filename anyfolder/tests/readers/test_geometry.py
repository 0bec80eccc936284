"""Arithmetic with boxes and polygons."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyfolder.readers.geometry import (
    BOX_FORMS,
    box_around,
    box_of_mask,
    circle,
    clip_points,
    clipped,
    polygon_area,
    scaled,
    upright_box,
)

BOX = 4.0, 6.0, 20.0, 24.0
WRITTEN = dict(
    xywh=BOX,
    xyxy=(4, 6, 24, 30),
    center=(14, 18, 20, 24),
    yxyx=(6, 4, 30, 24),
    xxyy=(4, 24, 6, 30),
)


@pytest.mark.parametrize('form', BOX_FORMS)
def test_every_form_of_a_box_converts_to_left_top_width_height(form):
    assert BOX_FORMS[form].as_xywh(*WRITTEN[form]) == BOX
    assert len(BOX_FORMS[form].words.split(', ')) == 4


@pytest.mark.parametrize('form', BOX_FORMS)
def test_numbers_may_be_arrays(form):
    columns = np.array([WRITTEN[form]] * 3, float).T
    assert (np.stack(BOX_FORMS[form].as_xywh(*columns)).T == BOX).all()


def test_scaled_multiplies_by_width_and_height_in_turn():
    assert scaled([0.5, 0.5, 0.25, 1], (64, 48)) == [32, 24, 16, 48]


def test_box_around_polygons():
    assert box_around([[1, 2, 5, 9], [0, 4, 3, 3]]) == (0, 2, 5, 7)
    with pytest.raises(ValueError, match='empty'):
        box_around([])


@pytest.mark.parametrize('degrees', [0, 180, -360, math.nan, math.inf])
def test_boxes_without_a_rotation_return_none(degrees):
    assert upright_box(BOX, degrees) is None


@pytest.mark.parametrize(
    ('degrees', 'sides'), [(90, (24, 20)), (-90, (24, 20)), (45, (31.113, 31.113))]
)
def test_rotated_boxes_become_the_upright_box_around_them(degrees, sides):
    left, top, width, height = upright_box(BOX, degrees)
    assert (width, height) == pytest.approx(sides, abs=1e-3)
    assert (left + width / 2, top + height / 2) == pytest.approx((14, 18))  # the center stays


@given(st.tuples(*[st.floats(-100, 200)] * 2), st.tuples(*[st.floats(0, 200)] * 2))
def test_clipped_boxes_lie_in_the_image(corner, sides):
    left, top, width, height = clipped((*corner, *sides), (64, 48))
    if min(width, height) > 0:
        assert 0 <= left < left + width <= 64 + 1e-9
        assert 0 <= top < top + height <= 48 + 1e-9


def test_points_outside_are_moved_to_the_edge():
    assert clip_points([-3, 5, 70, 50], (64, 48)) == [0, 5, 64, 48]


def test_box_of_a_mask():
    mask = np.zeros((10, 12), bool)
    assert box_of_mask(mask) is None
    mask[2:5, 3:11] = True
    assert box_of_mask(mask) == (3, 2, 8, 3)


@pytest.mark.parametrize(
    ('polygon', 'area'),
    [
        ([0, 0, 4, 0, 4, 3, 0, 3], 12),
        ([0, 0, 0, 3, 4, 0], 6),
        ([1, 1, 2, 2], 0),
    ],
)
def test_area_of_a_polygon(polygon, area):
    assert polygon_area(polygon) == area


def test_polygon_of_an_ellipse_has_nearly_its_area():
    assert polygon_area(circle((5, 5), (2, 3), corners=100)) == pytest.approx(6 * math.pi, rel=0.01)
    assert circle((5, 5), (4, 1), radians=math.pi / 6)[:2] == pytest.approx((5 + 12**0.5, 7))
