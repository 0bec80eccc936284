"""The lines of YOLO's labels."""

from pathlib import Path

import pytest

from anyfolder.readers.formats.yolo import YoloLabels, are_labels, parse_yolo
from anyfolder.readers.formats.yolo_line_form import LineForm

FILE = Path('0.txt')
NAMED = Path('data.yaml'), ['bar', '', 'square']  # class 1 has no name


def parse(*lines: str, form: LineForm = LineForm()):
    return parse_yolo(YoloLabels(lines, NAMED, form), FILE)


@pytest.mark.parametrize(
    ('line', 'fits'),
    [
        ('0 0.5 0.5 0.25 0.1', True),
        ('1.0 5e-1 0.5 .25 0.1 0.9', True),
        ('0 0.5 0.5 0.25', False),
        ('bar 0.5 0.5 0.25 0.1', False),
        ('images/0.jpg', False),
        ('', False),
    ],
)
def test_labels_are_recognized_by_first_line(line, fits):
    second_line = 'a'  # invalid, but not read
    assert are_labels([line, second_line] if line else [], FILE) == fits


def test_boxes_are_relative_centers_and_sizes():
    [image] = parse('0 0.5 0.25 0.2 0.1', '2.0 0 0 1 1').images
    bar, square = image.objects
    assert (bar.name, bar.form, bar.relative) == ('bar', 'center', True)
    assert bar.box == [0.5, 0.25, 0.2, 0.1]
    assert bar.origin == 'line 1 of 0.txt'
    assert square.name == 'square'
    assert image.name == ''


@pytest.mark.parametrize('score', ['', ' 0.9'])
def test_polygons_may_end_with_a_score(score):
    [found] = parse(f'0 0.1 0.1 0.9 0.1 0.9 0.5{score}').images[0].objects
    assert (found.box, found.segmentation) == ((), [[0.1, 0.1, 0.9, 0.1, 0.9, 0.5]])


@pytest.mark.parametrize(
    ('line', 'form'),
    [
        ('0 0.5 0.25 0.2 0.1 0.9', LineForm()),
        ('0 0.9 0.5 0.25 0.2 0.1', LineForm(box_start=1)),  # a score before the box
        ('0 0.5 0.25 0.2 0.1 0.4 0.4 2', LineForm(after_box=3)),  # a keypoint after the box
    ],
)
def test_line_form_gives_the_position_of_the_box(line, form):
    assert parse(line, form=form).images[0].objects[0].box == [0.5, 0.25, 0.2, 0.1]


@pytest.mark.parametrize(
    ('line', 'words'),
    [
        ('0 x 0.5 0.2 0.1', 'lines are neither a class and 4 numbers'),
        ('0 nan 0.5 0.2 0.1', 'lines are neither a class and 4 numbers'),
        ('0.5 0.5 0.5 0.2 0.1', 'lines are neither a class and 4 numbers'),
        ('0 0.5 0.5 0.2', 'lines are neither a class and 4 numbers'),
        ('0', 'lines are neither a class and 4 numbers'),
        ('3 0.5 0.5 0.2 0.1', 'lines have a class that data.yaml does not name'),
        ('1 0.5 0.5 0.2 0.1', 'lines have a class that data.yaml does not name'),
        ('-1 0.5 0.5 0.2 0.1', 'lines have a class that data.yaml does not name'),
    ],
)
def test_invalid_lines_become_faults(line, words):
    parsed = parse(line, '0 0.5 0.5 0.2 0.1')
    [fault] = parsed.faults
    assert words in fault.what
    assert fault.example.endswith('line 1 of 0.txt')
    assert fault.remedy
    assert len(parsed.images[0].objects) == 1
