"""Supervisely's JSON of an image."""

import zlib
from base64 import b64encode
from pathlib import Path

import cv2
import numpy as np
import pytest

from anyfolder.limits import LimitError
from anyfolder.readers.formats.supervisely import is_supervisely, parse_supervisely

FILE = Path('0.jpg.json')
TRIANGLE = [[4, 6], [24, 6], [24, 30]]


def content(*figures) -> dict:
    return dict(size=dict(height=48, width=64), tags=[], objects=[*figures])


def figure(kind: str, exterior=TRIANGLE, interior=()) -> dict:
    points = dict(exterior=exterior, interior=[*interior])
    return dict(classTitle='a', geometryType=kind, points=points)


def bitmap(png: bytes) -> dict:
    data = b64encode(zlib.compress(png)).decode()
    return dict(classTitle='a', geometryType='bitmap', bitmap=dict(data=data, origin=[10, 20]))


def png_of(mask: np.ndarray) -> bytes:
    return cv2.imencode('.png', mask)[1].tobytes()


def test_supervisely_files_have_class_titles():
    assert is_supervisely(content(), FILE)
    assert is_supervisely(content(figure('polygon')), FILE)
    assert not is_supervisely(dict(content(), objects=[dict(label='road')]), FILE)  # Cityscapes
    assert not is_supervisely(dict(objects=[]), FILE)


def test_rectangles_and_polygons():
    [image] = parse_supervisely(
        content(figure('rectangle', [[4, 6], [24, 30]]), figure('polygon')), FILE
    ).images
    box, polygon = image.objects
    assert image.stated_size == (64, 48)
    assert (box.name, box.form, box.box) == ('a', 'xyxy', [4, 6, 24, 30])
    assert polygon.segmentation == [[4, 6, 24, 6, 24, 30]]


def test_bitmaps_become_polygons_at_their_position():
    mask = np.zeros((8, 9), np.uint8)
    mask[1:7, 2:8] = 255
    [found] = parse_supervisely(content(bitmap(png_of(mask))), FILE).images[0].objects
    [polygon] = found.segmentation
    assert {*zip(polygon[::2], polygon[1::2], strict=True)} == {
        (12, 21), (12, 26), (17, 26), (17, 21),
    }  # fmt: skip


def test_filled_holes_and_omitted_figures_are_reported():
    rows = content(figure('polygon', interior=[TRIANGLE]), figure('line'), figure('point'))
    parsed = parse_supervisely(rows, FILE)
    assert len(parsed.images[0].objects) == 1
    assert [fault.what for fault in parsed.faults] == [
        'holes of polygons filled',
        *['objects without a box left out'] * 2,
    ]


def test_bitmaps_that_unpack_to_far_more_raise():
    with pytest.raises(LimitError, match='unpacked'):
        parse_supervisely(content(bitmap(bytes(1 << 20))), FILE)


def test_invalid_bitmaps_raise():
    row = dict(bitmap(b''), bitmap=dict(data=b64encode(b'abc').decode(), origin=[0, 0]))
    with pytest.raises(ValueError, match='unpacked'):
        parse_supervisely(content(row), FILE)
