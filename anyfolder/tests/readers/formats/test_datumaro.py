"""Datumaro's own JSON."""

from pathlib import Path

import pytest

from anyfolder.readers.formats.datumaro import is_datumaro, parse_datumaro

FILE = Path('default.json')
POINTS = [4, 6, 24, 6, 24, 30]


def content(*shapes) -> dict:
    item = dict(id='0', annotations=[*shapes], image=dict(path='0.png', size=[48, 64]))
    labels = [dict(name=name, parent='', attributes=[]) for name in ('bar', 'square')]
    return dict(info={}, categories=dict(label=dict(labels=labels)), items=[item])


def shape(kind: str, **values) -> dict:
    return dict(id=0, type=kind, label_id=1, **values)


BOX = shape('bbox', bbox=[1, 2, 3, 4])


def test_datumaro_files_have_a_box_or_a_polygon():
    assert is_datumaro(content(BOX), FILE)
    assert is_datumaro(content(shape('polygon', points=POINTS)), FILE)
    assert not is_datumaro(content(shape('label')), FILE)
    assert not is_datumaro({'items': [{}], 'categories': ['a']}, FILE)  # a shop's items
    assert not is_datumaro([], FILE)


def test_label_ids_are_indices_of_the_names_in_the_file():
    parsed = parse_datumaro(content(BOX, shape('polygon', points=POINTS)), FILE)
    [image] = parsed.images
    assert (image.name, image.stated_size) == ('0.png', (64, 48))
    assert parsed.names == ['bar', 'square']
    box, polygon = image.objects
    assert (box.name, box.form, box.box) == ('square', 'xywh', [1, 2, 3, 4])
    assert (polygon.box, polygon.segmentation) == ((), [POINTS])


def test_open_lines_and_keypoints_are_left_out_and_reported():
    parsed = parse_datumaro(
        content(BOX, shape('polyline', points=POINTS), shape('points', points=POINTS)), FILE
    )
    assert len(parsed.images[0].objects) == 1
    assert parsed.faults == [('objects without a box left out', '0.png in default.json', '')]


def test_boxes_without_a_class_are_left_out_and_reported():
    caption = dict(type='caption', caption='a bar', label_id=None)
    parsed = parse_datumaro(content(BOX, caption, dict(BOX, label_id=None)), FILE)
    assert len(parsed.images[0].objects) == 1
    assert parsed.faults == [('objects without a box left out', '0.png in default.json', '')]
    assert parse_datumaro(content(BOX, caption), FILE).faults == []


@pytest.mark.parametrize('flags', [dict(attributes=dict(difficult=True)), dict(ignore=1)])
def test_ignored_objects_are_marked(flags):
    [found] = parse_datumaro(content(dict(BOX, **flags)), FILE).images[0].objects
    assert found.crowd


@pytest.mark.parametrize('wrong', [dict(BOX, label_id=value) for value in (5, -1, 'a')])
def test_invalid_label_ids_raise(wrong):
    with pytest.raises((IndexError, TypeError)):
        parse_datumaro(content(wrong), FILE)
