"""Boxes and polygons in any form, converted to pixels."""

from pathlib import Path

import pytest
from rejection import rejects

from anyfolder.readers.boxes_in_pixels import to_pixels
from anyfolder.readers.findings import Findings
from anyfolder.readers.records import ImageRecord, Instance

BOX = 4, 6, 20, 24


def converted(*objects: Instance) -> tuple[list[Instance], Findings]:
    """The objects of an image of 64 x 48 pixels after their conversion, and the findings."""
    record, findings = ImageRecord(Path('0.jpg'), size=(64, 48), instances=[*objects]), Findings()
    to_pixels([record], findings)
    return record.instances, findings


@pytest.mark.parametrize(
    'written',
    [
        Instance('a', BOX),
        Instance('a', ['4', 6.0, '20', '2.4e1']),
        Instance('a', (4, 6, 24, 30), form='xyxy'),
        Instance('a', (14, 18, 20, 24), form='center'),
        Instance('a', (14 / 64, 18 / 48, 20 / 64, 24 / 48), form='center', relative=True),
        Instance('a', (5, 7, 25, 31), form='xyxy', from_1=True),
        Instance.of_polygons('a', [[4, 6, 24, 6, 24, 30]]),
        Instance.of_polygons('a', [[4, 6, 24, 6], [24, 30, 10, 10]]),
        Instance('a', (), [[4 / 64, 6 / 48, 24 / 64, 6 / 48, 24 / 64, 30 / 48]], relative=True),
        Instance('a', (), [[5, 7, 25, 7, 25, 31]], from_1=True),
        Instance('a', (2, 8, 24, 20), degrees=90),
        Instance('a', (2, 8, 24, 20), degrees='-90'),
    ],
)
def test_boxes_in_any_form_become_left_top_width_height_in_pixels(written):
    [found], _ = converted(written)
    assert found.box == pytest.approx(BOX)
    assert (found.form, found.relative, found.from_1) == ('xywh', False, False)


def test_polygons_are_converted_to_pixels():
    fractions = [[0.5, 0.5, 1, 0.5, 1, 1]]
    [found], _ = converted(Instance('a', (), fractions, relative=True))
    assert found.segmentation == [[32, 24, 64, 24, 64, 48]]
    [found], _ = converted(Instance('a', (), [[5, 7, 25, 7, 25, 31]], from_1=True))
    assert found.segmentation == [[4, 6, 24, 6, 24, 30]]


def test_stated_form_is_not_questioned():
    corners = [Instance('a', (30, 20, 40, 30 + i)) for i in range(10)]
    record, findings = ImageRecord(Path('0.jpg'), size=(64, 48), instances=corners), Findings()
    with rejects('seem to be left, top, right, bottom'):
        to_pixels([record], findings)
    to_pixels([record], findings, form_is_stated=True)
    assert record.instances[0].box == (30, 20, 40, 30)


def test_pixels_are_counted_from_1_unless_a_corner_is_0():
    corners = (31, 41, 61, 45), (1, 5, 9, 9)
    found, _ = converted(*(Instance('a', box, form='xyxy', from_1=True) for box in corners))
    assert [instance.box for instance in found] == [(30, 40, 30, 4), (0, 4, 8, 4)]
    corners = (31, 41, 61, 45), (0, 5, 9, 9)
    found, _ = converted(*(Instance('a', box, form='xyxy', from_1=True) for box in corners))
    assert [instance.box for instance in found] == [(31, 41, 30, 4), (0, 5, 9, 4)]


def test_pixels_that_are_stated_to_count_from_1_may_have_a_corner_at_0():
    box = Instance('a', (0, 5, 9, 9), form='xyxy', from_1=True)
    record = ImageRecord(Path('0.jpg'), size=(64, 48), instances=[box])
    to_pixels([record], Findings(), form_is_stated=True)
    assert record.instances[0].box == (-1, 4, 9, 4)


def test_rotated_boxes_are_reported():
    _, findings = converted(Instance('a', BOX, degrees=30, origin='line 3'))
    [(what, count, examples)] = findings.rows()
    assert what == 'rotated boxes, replaced by the upright rectangle around them'
    assert (count, examples) == (1, ['30 degrees of line 3'])


def test_box_around_a_polygon_is_not_rotated_again():
    polygon = Instance.of_polygons('a', [[4, 6, 24, 6, 24, 30]])
    polygon.degrees = 30
    [found], findings = converted(polygon)
    assert found.box == BOX
    assert not findings.rows()


@pytest.mark.parametrize('degrees', [0, 180, 360, 'nan', None, '', 'left'])
def test_boxes_without_a_rotation_stay(degrees):
    [found], findings = converted(Instance('a', BOX, degrees=degrees))
    assert found.box == BOX
    assert not findings.rows()


@pytest.mark.parametrize(
    'box',
    [
        (1, 2, 3),
        (1, 2, 3, float('nan')),
        (1, 2, 3, 'four'),
        ['1234'],
        [None],
        (True, 2, 3, 4),
    ],
)
def test_invalid_boxes_are_rejected(box):
    found, findings = converted(Instance('a', box, origin='line 3'), Instance('a', BOX))
    assert len(found) == 1
    [((what, _), kind)] = findings.errors.items()
    assert what == 'boxes are not 4 finite numbers'
    assert kind.examples == [f'{[*box]!r} of line 3']


@pytest.mark.parametrize('box', [5, True, '1234', dict(x=1, y=2, w=3, h=4)])
def test_boxes_that_are_no_list_are_rejected(box):
    found, findings = converted(Instance('a', box, origin='line 3'), Instance('a', BOX))
    assert len(found) == 1
    [((what, _), kind)] = findings.errors.items()
    assert what == 'boxes are not 4 finite numbers'
    assert kind.examples == [f'{[box]!r} of line 3']


@pytest.mark.parametrize(
    'polygons', [[], [[]], [[1], [2]], ['a'], [[1, 2, 'x', 4]], [[1, float('inf')]], None]
)
def test_objects_without_a_valid_box_or_polygon_are_rejected(polygons):
    found, findings = converted(Instance('a', (), polygons))
    assert not found
    assert len(findings.errors) == 1


def test_fractions_far_beyond_the_image_are_rejected():
    valid = [Instance('a', (0.5, 0.5, 0.2, 0.2), form='center', relative=True) for _ in range(20)]
    wrong = Instance('a', (70.0, 0.5, 0.2, 0.2), form='center', relative=True, origin='line 3')
    found, findings = converted(*valid, wrong)
    assert len(found) == 20
    [((what, remedy), kind)] = findings.errors.items()
    assert 'values beyond 0 to 1' in what
    assert 'divide pixels' in remedy
    assert kind.examples == ['[70.0, 0.5, 0.2, 0.2], line 3']


@pytest.mark.parametrize('value', [-0.04, 1.04])
def test_fractions_may_exceed_the_image_by_rounding(value):
    found, _ = converted(Instance('a', (), [[0.5, 0.5, value, 0.2, 0.1, 0.1]], relative=True))
    assert len(found) == 1
