"""Objects compared with the pixels of their images."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rejection import rejects

from anyfolder.readers.box_meaning import SLACK
from anyfolder.readers.findings import Findings
from anyfolder.readers.object_checks import check_instances, without_repeats
from anyfolder.readers.records import ImageRecord, Instance

BOX = 30.0, 40.0, 30.0, 4.0


def checked(*objects: Instance, with_masks: bool = False) -> tuple[list[Instance], Findings]:
    """The objects of an image of 64 x 48 pixels that are kept, and the findings."""
    record, findings = ImageRecord(Path('0.jpg'), size=(64, 48), instances=[*objects]), Findings()
    check_instances([record], findings, with_masks)
    return record.instances, findings


@given(st.tuples(*[st.floats(-100, 200)] * 2), st.tuples(*[st.floats(-10, 200)] * 2))
def test_a_box_that_stays_lies_within_its_image(corner, sides):
    found, findings = checked(Instance('a', (*corner, *sides)), Instance('a', (1, 2, 3, 4)))
    left, top, width, height = found[0].box
    assert 0 <= left < left + width <= 64 + 1e-9
    assert 0 <= top < top + height <= 48 + 1e-9
    assert min(width, height) >= 1 - SLACK
    assert (len(found) == 2) != bool(findings.errors)


@pytest.mark.parametrize(
    ('box', 'words'),
    [
        ((60, 40, -30, 4), 'boxes have a negative width or height'),
        ((30, 40, 30, 0.5), 'boxes have a side of less than a pixel'),
        ((70, 40, 30, 4), r'boxes lie outside of their image'),
    ],
)
def test_invalid_boxes_raise(box, words):
    found, findings = checked(*[Instance('a', box, origin='line 3')] * 2)
    assert not found
    with rejects(rf'{words} .*of line 3, an image of 64 x 48\); correct them, or leave them out'):
        findings.check(2)


@pytest.mark.parametrize('box', [(0.0, 1.113281, 1.0, 1.0), (3.2, 4, 4.2 - 3.2, 3)])
def test_boxes_of_one_pixel_are_kept_despite_rounding(box):
    found, findings = checked(Instance('a', box))
    assert len(found) == 1
    assert not findings.errors


def test_boxes_beyond_an_edge_are_clipped_and_reported():
    [found], findings = checked(Instance('a', (50, -4, 30, 20), origin='line 3'))
    assert found.box == (50, 0, 14, 16)
    assert findings.rows() == [
        ('boxes clipped to their image', 1, ['[50.0, -4.0, 30.0, 20.0] of line 3'])
    ]


@pytest.mark.parametrize('area', [0, -1, None, '120', 'large', float('nan'), 1e9, 130.0])
def test_missing_and_invalid_areas_are_computed(area):
    [found], findings = checked(Instance('a', BOX, area=area))
    assert float(found.area) == pytest.approx(120)
    assert bool(findings.rows()) == (area not in (None, '120'))  # text is accepted


@pytest.mark.parametrize('area', [70, 121])
def test_area_that_fits_the_box_is_kept(area):
    [found], _ = checked(Instance('a', BOX, area=area))
    assert found.area == area


def test_area_is_that_of_the_polygon_if_there_is_one():
    triangle = Instance.of_polygons('a', [[30, 40, 60, 40, 60, 44]])
    assert checked(triangle, with_masks=True)[0][0].area == 60


def test_box_and_area_are_those_of_the_run_lengths_if_they_are_missing():
    """Two of the four pixels in the first column of the box are not in the mask."""
    counts = [1480, 2, 46, *[4, 44] * 28, 4, 196]
    runs = dict(size=[48, 64], counts=counts)
    [found], findings = checked(Instance('a', (), runs), with_masks=True)
    assert (found.box, found.area, found.segmentation) == (BOX, 118, runs)
    assert not findings.rows()
    [found], _ = checked(Instance('a', (), runs))
    assert (found.box, found.area, found.segmentation) == (BOX, 120, None)
    found, findings = checked(Instance('a', (), dict(runs, counts=[5, 6])))
    assert not found
    assert [what for what, _ in findings.errors] == ['masks are not valid COCO run lengths']


def test_polygons_are_dropped_if_only_boxes_are_needed():
    [found], _ = checked(Instance('a', BOX, [[1, 2]]))
    assert found.segmentation is None


def test_repeated_boxes_are_left_out_and_reported():
    """yolov5#5210."""
    found, findings = checked(Instance('a', BOX), Instance('b', BOX), Instance('a', BOX))
    assert [instance.name for instance in found] == ['a', 'b']
    [(what, count, _)] = findings.rows()
    assert what == 'objects left out, since the class has the same box twice'
    assert count == 1


def test_the_first_of_equal_objects_is_kept():
    first, other, again = Instance('a', BOX), Instance('b', BOX), Instance('a', BOX)
    kept, repeated = without_repeats([first, other, again])
    assert kept == [first, other]
    assert repeated[0] is again


def test_crowds_are_kept_and_reported():
    found, findings = checked(Instance('a', BOX, crowd=True))
    assert len(found) == 1
    what, *_ = findings.rows()[0]
    assert what == 'objects marked as crowd, ignored or difficult, neither trained on nor counted'


def test_boxes_without_a_polygon_raise_if_masks_are_needed():
    objects = Instance('a', BOX, origin='line 3'), Instance.of_polygons('a', [[1, 1, 9, 1, 9, 9]])
    found, findings = checked(*objects, with_masks=True)
    assert len(found) == 1
    words = 'objects have a box but no polygon .*line 3.*; draw one, or give task=.detection'
    with rejects(words):
        findings.check(2)
