"""VGG Image Annotator's projects, exports and tables."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from anyfolder.readers.formats.via import is_via, is_via_table, parse_via, parse_via_table
from anyfolder.readers.geometry import box_around

FILE = Path('via.json')
RECT = dict(name='rect', x=1, y=2, width=30, height=20)
POLYGON = dict(name='polygon', all_points_x=[4, 24, 24], all_points_y=[6, 6, 30])


def region(shape=RECT, **attributes) -> dict:
    return dict(shape_attributes=shape, region_attributes=attributes)


def export(*regions) -> dict:
    image = dict(filename='0.png', size=123, regions=[*regions], file_attributes={})
    return {'0.png123': image}


def objects(*regions):
    return parse_via(export(*regions), FILE).images[0].objects


@pytest.mark.parametrize(
    ('content', 'fits'),
    [
        (export(region()), True),
        (dict(_via_settings={}, _via_img_metadata=export(region())), True),
        ({'0.png123': dict(filename='0.png', regions={'0': region()})}, True),  # VIA 1
        (export(), False),
        (dict(_via_img_metadata={}), False),
        (dict(a=dict(filename='0.png', regions=3)), False),
        ([region()], False),
        (None, False),
    ],
)
def test_is_via_needs_a_region(content, fits):
    assert is_via(content, FILE) == fits
    if fits:
        [rectangle] = parse_via(content, FILE).images[0].objects
        assert rectangle.box == [1, 2, 30, 20]


def test_polygons_ellipses_and_circles_are_objects():
    ellipse = dict(name='ellipse', cx=20, cy=10, rx=5, ry=3)
    circle = dict(name='circle', cx=20, cy=10, r=5)
    polygon, ellipse_object, circle_object = objects(
        region(POLYGON), region(ellipse), region(circle)
    )
    assert (polygon.box, polygon.segmentation) == ((), [[4, 6, 24, 6, 24, 30]])
    for outlined, radii in ((ellipse_object, (5, 3)), (circle_object, (5, 5))):
        points = (np.reshape(outlined.segmentation[0], (-1, 2)) - (20, 10)) / radii
        assert np.linalg.norm(points, axis=1) == pytest.approx(1)


def test_theta_rotates_an_ellipse():
    [found] = objects(region(dict(name='ellipse', cx=20, cy=10, rx=5, ry=3, theta=math.pi / 2)))
    assert box_around(found.segmentation) == pytest.approx((17, 5, 6, 10))


@pytest.mark.parametrize('kind', ['point', 'polyline'])
def test_points_and_open_lines_are_left_out_and_reported(kind):
    parsed = parse_via(export(region(dict(POLYGON, name=kind)), region()), FILE)
    assert len(parsed.images[0].objects) == 1
    assert parsed.faults == [(f'shapes left out, {kind}', '0.png in via.json', '')]


@pytest.mark.parametrize(
    ('attributes', 'name'),
    [
        (dict(fruit='apple'), 'apple'),  # the only attribute
        (dict(quality='good', Label='apple'), 'apple'),
        (dict(name='apple', color='red'), 'apple'),
        (dict(fruit=dict(apple=True, pear=False)), 'apple'),  # checkboxes
        (dict(fruit=dict(apple=True, pear=True)), ''),
        (dict(fruit=None), ''),
        ({}, 'object'),  # a project without attributes
    ],
)
def test_class_comes_from_attribute(attributes, name):
    [found] = objects(region(**attributes))
    assert found.name == name


def test_region_without_the_class_attribute_has_no_class():
    names = [found.name for found in objects(region(fruit='apple'), region())]
    assert names == ['apple', '']


def test_ambiguous_attributes_raise():
    with pytest.raises(
        ValueError, match='none of its attributes color, size names the class; call one label or'
    ):
        objects(region(color='red', size='large'))


def test_incomplete_regions_raise():
    with pytest.raises(KeyError):
        objects(region(dict(name='rect', x=1)))


# 0.png has two regions, 1.png none.
ROWS = [
    dict(
        filename=name,
        region_count=count,
        region_shape_attributes=json.dumps(shape),
        region_attributes='{"fruit":"apple"}',
    )
    for name, count, shape in (('0.png', '2', RECT), ('0.png', '2', POLYGON), ('1.png', '0', {}))
]


@pytest.mark.parametrize('column', ['filename', '#filename'])
def test_table_cells_are_read_as_json(column):
    """VIA 1 begins the header with ``#``."""
    rows = [{column if key == 'filename' else key: row[key] for key in row} for row in ROWS]
    assert is_via_table(rows, FILE)
    parsed = parse_via_table(rows, FILE)
    assert [(image.name, len(image.objects)) for image in parsed.images] == [
        ('0.png', 2),
        ('1.png', 0),
    ]
    assert {found.name for found in parsed.images[0].objects} == {'apple'}


def test_other_tables_are_rejected():
    assert not is_via_table([dict(filename='0.png')], FILE)
    assert not is_via_table([], FILE)
