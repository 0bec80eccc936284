"""LabelMe's JSON."""

import base64
import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from anyfolder.readers.formats.labelme import is_labelme, labelme_image, parse_labelme

FILE = Path('3.json')
TRIANGLE = [[5, 5], [13, 5], [13, 20]]


def parse(*shapes, **entries):
    return parse_labelme(dict(shapes=[*shapes], **entries), FILE)


def shape(points=TRIANGLE, kind='polygon', label='pen', **entries) -> dict:
    return dict(label=label, points=points, shape_type=kind, **entries)


def test_labelme_files_have_shapes():
    assert is_labelme(dict(shapes=[]), FILE)
    assert not is_labelme(dict(shapes={}), FILE)
    assert not is_labelme([dict(shapes=[])], FILE)


def test_file_states_the_name_and_size_of_its_image():
    parsed = parse(shape(), imagePath='..\\raw\\3.jpg', imageWidth='64', imageHeight=48)
    [image] = parsed.images
    assert (image.name, image.stated_size) == ('..\\raw\\3.jpg', (64, 48))
    [pen] = image.objects
    assert (pen.name, pen.box, pen.segmentation) == ('pen', (), [[5, 5, 13, 5, 13, 20]])
    assert labelme_image(dict(imagePath=None)) == ''


def test_shapes_of_one_group_are_one_object():
    groups = (1, 1, None, None)
    shapes = [
        shape([[x + i, y] for x, y in TRIANGLE], group_id=group) for i, group in enumerate(groups)
    ]
    assert [len(found.segmentation) for found in parse(*shapes).images[0].objects] == [2, 1, 1]


@pytest.mark.parametrize(
    ('points', 'kind', 'polygon'),
    [
        ([[9, 8], [1, 2]], 'rectangle', [9, 8, 1, 8, 1, 2, 9, 2]),
        (TRIANGLE, None, [5, 5, 13, 5, 13, 20]),
        (TRIANGLE, 'rotation', [5, 5, 13, 5, 13, 20]),
    ],
)
def test_shapes_with_an_area_are_polygons(points, kind, polygon):
    [found] = parse(shape(points, kind)).images[0].objects
    assert found.segmentation == [polygon]


def test_circles_become_polygons_around_their_center():
    [found] = parse(shape([[10, 20], [13, 24]], 'circle')).images[0].objects  # center and edge
    points = np.reshape(found.segmentation[0], (-1, 2))
    assert len(points) == 32
    assert np.linalg.norm(points - (10, 20), axis=1) == pytest.approx(5)


@pytest.mark.parametrize(
    ('points', 'kind'),
    [([[1, 1]], 'point'), ([[1, 1], [2, 2], [3, 3]], 'linestrip'), (TRIANGLE[:2], 'polygon')],
)
def test_shapes_without_an_area_are_left_out_and_reported(points, kind):
    parsed = parse(shape(points, kind), shape())
    assert len(parsed.images[0].objects) == 1
    [fault] = parsed.faults
    assert fault == (f'shapes left out, {kind}', '3.json', '')


def test_rotated_boxes_are_reported():
    [fault] = parse(shape(kind='rotation', direction=0.5)).faults
    assert fault.what == 'rotated boxes, replaced by the upright rectangle around them'


def test_shape_with_null_for_its_label_has_no_class():
    [found] = parse(shape(label=None)).images[0].objects
    assert found.name == ''


@pytest.mark.parametrize('entries', [dict(difficult=True), dict(flags=dict(ignore=True))])
def test_difficult_and_ignored_shapes_are_marked(entries):
    assert parse(shape(**entries)).images[0].objects[0].crowd


def test_masks_become_outlines_at_their_position():
    pixels = np.zeros((12, 10), np.uint8)
    pixels[2:9, 3:8] = 1
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, 'PNG')
    mask = base64.b64encode(stream.getvalue()).decode()
    [found] = parse(shape([[20, 30], [29, 41]], 'mask', label=7, mask=mask)).images[0].objects
    assert found.name == '7'
    x, y = np.reshape(found.segmentation[0], (-1, 2)).T
    assert (x.min(), y.min(), x.max(), y.max()) == (23, 32, 27, 38)


@pytest.mark.parametrize(
    ('wrong', 'words'),
    [
        (dict(label='pen'), 'points'),
        (dict(points=TRIANGLE), 'label'),
        (dict(label='pen', points=[[1, 2, 3]]), 'unpack'),
        (dict(label='pen', points=[['a', 2]]), 'could not convert'),
        (shape([[1, 2], [3, 4]], 'mask', mask='!!'), 'its mask is not a PNG in base64'),
        ('pen', 'str'),
    ],
)
def test_invalid_shapes_raise(wrong, words):
    with pytest.raises((KeyError, TypeError, ValueError, AttributeError), match=words):
        parse(wrong)
