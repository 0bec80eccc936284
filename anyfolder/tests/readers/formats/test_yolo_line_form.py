"""Boxes, polygons, scores and keypoints in YOLO's lines, told apart by all lines."""

import re

import numpy as np
import pytest
from rejection import rejects

from anyfolder.readers.formats.yolo_line_form import LineForm, _dimensions, line_form

BOXES = [f'{i % 2} 0.{i + 2}5 0.5 0.1 0.{i + 1}' for i in range(7)]
POINTS = '0.5 0.5 {} 0.52 0.48 {} 0.45 0.55 {}'


@pytest.mark.parametrize(
    ('behind', 'shape'),
    [
        (POINTS.format(2, 1, 0), ['3', '3']),
        ('0.5 0.5 1', ['1', '3']),  # ultralytics#18891
        (' '.join(['0.5 0.5 2'] * 17), ['17', '3']),
        (POINTS.format('', '', ''), ['3', '2']),
        ('0.5 0.5 0.52 0.48 0 0 0.45 0.55 0.49 0.5', ['5', '2']),
        ('0.52 0.48', ['1', '2']),
        (POINTS.format(0.9, 0.81, 0.77), ['3', '3']),  # scores, as a model writes them
    ],
)
def test_poses_without_their_shape_are_a_question(behind, shape):
    """ultralytics#3041, JSON2YOLO#94."""
    lines = [f'0 0.5 0.5 0.2 0.2 {behind}', f'1 0.49 0.51 0.2 0.2 {behind}'] * 10
    question = re.escape(f'add kpt_shape: [{", ".join(shape)}] to data.yaml')
    with rejects(question):
        line_form(lines)
    with rejects(question):
        line_form(lines, ['n', '3'])  # which is no shape
    assert line_form(lines, shape) == (LineForm(0, int(shape[0]) * int(shape[1])), [])


def test_skeletons_of_two_kinds_are_no_polygons():
    kinds = [f'0 0.5 0.5 0.2 0.2{" 0.5 0.5 2" * 17}', f'1 0.5 0.5 0.2 0.2{" 0.5 0.5 1" * 21}']
    with rejects('a box and 17 or 21 keypoints, .* remove the numbers after the box in each line'):
        line_form(kinds * 10)


@pytest.mark.parametrize('points', [3, 4, 5, 8])
@pytest.mark.parametrize('dimensions', [2, 3])
def test_polygons_and_poses_are_told_apart(points, dimensions):
    generator = np.random.default_rng(points)
    size = generator.uniform(0.05, 0.4, (40, 2))
    middle = generator.uniform(size / 2, 1 - size / 2)
    inside = middle[:, None] + generator.uniform(-0.5, 0.5, (40, points, 2)) * size[:, None]
    seen = generator.uniform(0.3, 1, (40, points, dimensions - 2))
    poses = np.concatenate((inside, seen), axis=-1).reshape(40, -1)
    assert _dimensions(np.concatenate((middle, size, poses), axis=-1)) == dimensions
    angles = np.sort(generator.uniform(0, 2 * np.pi, (40, points)))
    around = np.stack((np.cos(angles), np.sin(angles)), axis=-1) * size[:, None] / 2
    assert _dimensions((middle[:, None] + around).reshape(40, -1)) == 0


@pytest.mark.parametrize(
    'polygon',
    [
        '0.2 0.2 0.6 0.2 0.6 0.6 0.2 0.6',  # a turned box of four corners
        '0.6 0.6 0.2 0.6 0.2 0.2 0.6 0.2',
        '0.4 0.2 0.6 0.3 0.6 0.5 0.4 0.6 0.2 0.5 0.2 0.3',
        '0.2 0.2 0.6 0.2 0.6 0.6 0.2 0.6 0.9',  # with a score
    ],
)
def test_polygons_of_equally_many_points_are_no_poses(polygon):
    form, _ = line_form([f'0 {polygon}', f'1 {polygon}'] * 10)
    assert form.box_in([*map(float, polygon.split())]) is None


@pytest.mark.parametrize(
    ('line', 'form'),
    [
        ('{box}', LineForm()),
        ('{box} 0.9', LineForm()),
        ('{box} {i}', LineForm()),  # the number of a track
        ('{box} 0.9 {i}', LineForm(behind=2)),  # a score, and the number of a track
        ('{c} 0.9 {rest}', LineForm(first=1)),  # a score before the box
        ('{c} 0.8 0.2 0.7 0.6 0.8 0.9', LineForm()),  # triangles that are no box in the image
    ],
)
def test_numbers_around_a_box_are_told_by_all_lines(line, form):
    lines = [line.format(box=box, c=box[0], rest=box[2:], i=i + 2) for i, box in enumerate(BOXES)]
    found, faults = line_form(lines)
    assert found == form
    assert len(faults) == (len(lines) if form.first else 0)


def test_two_values_behind_a_box_may_be_a_triangle():
    with rejects('may be a box and two more values, or a polygon of three points'):
        line_form([f'{box} 0.01 0.99' for box in BOXES])


def test_there_may_be_no_line():
    assert line_form([]) == (LineForm(), [])
