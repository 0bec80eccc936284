"""Boxes whose numbers are in columns such as left and width, by the units of a layout."""

import pytest

from anyfolder.layouts.box_units import BoxUnits

CENTER = dict(x=20.0, y=30.0, width=8.0, height=6.0)
EDGES = dict(left=1.0, top=2.0, right=3.0, bottom=5.0)


@pytest.mark.parametrize(
    ('values', 'form', 'box'),
    [
        (EDGES, 'xyxy', [1, 2, 3, 5]),
        (EDGES | CENTER, 'xyxy', [1, 2, 3, 5]),
        (dict(left=1.0, top=2.0, width=8.0, height=6.0), 'xywh', [1, 2, 8, 6]),
        (CENTER, 'center', [20, 30, 8, 6]),
        # A single edge does not give the box.
        (CENTER | dict(left=16.0), 'center', [20, 30, 8, 6]),
        (CENTER | dict(right=24.0), 'center', [20, 30, 8, 6]),
    ],
)
def test_columns_give_the_first_form_that_is_complete(values, form, box):
    instance = BoxUnits(form='center').of_columns(values, 'row 1')
    assert (instance.form, instance.box) == (form, box)


def test_x_and_y_are_what_the_units_state():
    assert BoxUnits(form='xywh').of_columns(CENTER, 'row 1').form == 'xywh'
