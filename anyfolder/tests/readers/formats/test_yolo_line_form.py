"""Boxes, polygons, scores and keypoints are told apart by all lines of a folder."""

import re

import numpy as np
import pytest
from rejection import rejects

from anyfolder.readers.formats.yolo_line_form import LineForm, _dimensions, line_form

BOXES = [f'{i % 2} 0.{i + 2}5 0.5 0.1 0.{i + 1}' for i in range(7)]  # of the classes 0 and 1
POINTS = '0.5 0.5 {} 0.52 0.48 {} 0.45 0.55 {}'  # three keypoints with a visibility or score


@pytest.mark.parametrize(
    ('keypoints', 'shape'),
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
def test_poses_without_kpt_shape_raise(keypoints, shape):
    """Others read such lines as polygons: ultralytics#3041, JSON2YOLO#94."""
    lines = [f'0 0.5 0.5 0.2 0.2 {keypoints}', f'1 0.49 0.51 0.2 0.2 {keypoints}'] * 10
    remedy = re.escape(f'add kpt_shape: [{", ".join(shape)}] to data.yaml')
    with rejects(remedy):
        line_form(lines)
    with rejects(remedy):
        line_form(lines, ['n', '3'])  # an invalid kpt_shape
    assert line_form(lines, shape) == (LineForm(after_box=int(shape[0]) * int(shape[1])), [])


def test_poses_of_two_lengths_raise():
    lines = [f'0 0.5 0.5 0.2 0.2{" 0.5 0.5 2" * 17}', f'1 0.5 0.5 0.2 0.2{" 0.5 0.5 1" * 21}']
    with rejects('a box and 17 or 21 keypoints, .* remove the numbers after the box in each line'):
        line_form(lines * 10)


@pytest.mark.parametrize('points', [3, 4, 5, 8])
@pytest.mark.parametrize('dimensions', [2, 3])
def test_polygons_and_poses_are_told_apart(points, dimensions):
    """Random poses in their boxes, and random convex polygons in the same boxes."""
    generator = np.random.default_rng(points)
    size = generator.uniform(0.05, 0.4, (40, 2))
    middle = generator.uniform(size / 2, 1 - size / 2)
    keypoints = middle[:, None] + generator.uniform(-0.5, 0.5, (40, points, 2)) * size[:, None]
    scores = generator.uniform(0.3, 1, (40, points, dimensions - 2))
    poses = np.concatenate((keypoints, scores), axis=-1).reshape(40, -1)
    boxes_and_keypoints = np.concatenate((middle, size, poses), axis=-1)
    assert _dimensions(boxes_and_keypoints) == dimensions  # values per keypoint
    angles = np.sort(generator.uniform(0, 2 * np.pi, (40, points)))
    offsets = np.stack((np.cos(angles), np.sin(angles)), axis=-1) * size[:, None] / 2
    polygons = (middle[:, None] + offsets).reshape(40, -1)
    assert _dimensions(polygons) == 0


@pytest.mark.parametrize(
    'polygon',
    [
        '0.2 0.2 0.6 0.2 0.6 0.6 0.2 0.6',  # the corners of a box
        '0.6 0.6 0.2 0.6 0.2 0.2 0.6 0.2',
        '0.4 0.2 0.6 0.3 0.6 0.5 0.4 0.6 0.2 0.5 0.2 0.3',
        '0.2 0.2 0.6 0.2 0.6 0.6 0.2 0.6 0.9',  # with a score
    ],
)
def test_polygons_of_equal_length_are_not_poses(polygon):
    form, _ = line_form([f'0 {polygon}', f'1 {polygon}'] * 10)
    assert form.box_in([*map(float, polygon.split())]) is None  # a polygon


@pytest.mark.parametrize(
    ('line', 'form'),
    [
        ('{box}', LineForm()),
        ('{box} 0.9', LineForm()),
        ('{box} {i}', LineForm()),  # a track number
        ('{box} 0.9 {i}', LineForm(after_box=2)),  # a score and a track number
        ('{label} 0.9 {numbers}', LineForm(box_start=1)),  # a score before the box
        # triangles; as boxes, they exceed the image
        ('{label} 0.8 0.2 0.7 0.6 0.8 0.9', LineForm()),
    ],
)
def test_meaning_of_further_numbers_is_inferred_from_all_lines(line, form):
    lines = []
    for i, box in enumerate(BOXES, 2):  # from 2 on, since 0 and 1 could also be scores
        label, numbers = box.split(maxsplit=1)
        lines.append(line.format(box=box, label=label, numbers=numbers, i=i))
    inferred, faults = line_form(lines)
    assert inferred == form
    assert len(faults) == (len(lines) if form.box_start else 0)  # a score before the box is unusual


def test_two_values_after_a_box_are_ambiguous_and_raise():
    with rejects('may be a box and two more values, or a polygon of three points'):
        line_form([f'{box} 0.01 0.99' for box in BOXES])


def test_form_without_lines_is_the_default():
    assert line_form([]) == (LineForm(), [])
