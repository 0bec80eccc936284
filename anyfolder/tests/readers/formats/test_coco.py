"""COCO's JSON, and what programs write in its place."""

import json
from pathlib import Path

import pytest
from foreign_data import coco_json

from anyfolder.readers.formats.coco import is_coco, parse_coco

FILE = Path('instances.json')


def content(**changes) -> dict:
    """Two images with a bar and a square each; a function makes an entry anew."""
    boxes = [('bar', (30, 40, 60, 44)), ('square', (5, 6, 21, 22))]
    found = json.loads(coco_json(['0.jpg', 'photos/1.jpg'], [boxes, boxes], first=5))
    for key, change in changes.items():
        found[key] = change(found[key]) if callable(change) else change
    return found


def first_object(**entries):
    """The first object of an annotation with other entries; None takes one out."""

    def change(rows):
        rows[0] |= entries
        rows[0] = {key: value for key, value in rows[0].items() if value is not None}
        return rows

    return parse_coco(content(annotations=change), FILE).images[0].objects[0]


def test_images_have_their_objects_as_they_are_written():
    parsed = parse_coco(content(), FILE)
    assert [(image.name, image.stated) for image in parsed.images] == [
        ('0.jpg', (64, 48)),
        ('photos/1.jpg', (64, 48)),
    ]
    assert parsed.names == ['bar', 'square']
    assert not parsed.faults
    bar = parsed.images[0].objects[0]
    assert (bar.name, bar.form, bar.relative, bar.box) == ('bar', 'xywh', False, [30, 40, 30, 4])
    assert bar.segmentation == [[30, 40, 60, 40, 60, 44, 30, 44]]
    assert (bar.area, bar.crowd) == (120, False)
    assert bar.origin == 'annotation 0 in instances.json'


@pytest.mark.parametrize(
    ('found', 'fits'),
    [
        (content(), True),
        (content(annotations=[]), True),  # a part without an object
        (content(annotations=[dict(image_id=0, category_id=1)]), False),  # of iNaturalist's classes
        (content(annotations=[dict(image_id=0, caption='a bar')]), False),
        (dict(images=[], annotations=[]), False),
        ([dict(image_id=0, bbox=[1, 2, 3, 4])], False),  # results of a detector
        ({}, False),
        (None, False),
    ],
)
def test_a_file_of_coco_has_boxes(found, fits):
    assert is_coco(found, FILE) == fits


@pytest.mark.parametrize(
    ('change', 'words'),
    [
        (dict(categories=lambda rows: 3), 'int'),
        (
            dict(categories=lambda rows: [dict(row, id=1) for row in rows]),
            'categories have the same id',
        ),
        (dict(images=lambda rows: [dict(id=0)]), "no 'file_name'"),
        (dict(images=lambda rows: [rows[0], rows[0]]), 'two images have the id 0'),
        (dict(annotations=lambda rows: [dict(bbox=[1, 2, 3, 4])]), 'image_id'),
        (dict(annotations=lambda rows: [3]), 'int'),
    ],
)
def test_a_file_that_is_not_complete_raises(change, words):
    with pytest.raises((KeyError, TypeError, ValueError, AttributeError), match=words):
        parse_coco(content(**change), FILE)


@pytest.mark.parametrize(
    ('entries', 'what', 'example'),
    [
        (dict(image_id=9), 'annotations belong to images that their file does not list', '9 of'),
        (dict(category_id=8), 'annotations have a category that their file does not list', '8 of'),
    ],
)
def test_annotations_of_nothing_in_the_file_are_faults(entries, what, example):
    def change(rows):
        rows[0] |= entries
        return rows

    parsed = parse_coco(content(annotations=change), FILE)
    [fault] = parsed.faults
    assert fault.what == what
    assert fault.example.startswith(f'{example} annotation 0 in ')
    assert fault.remedy
    assert [len(image.objects) for image in parsed.images] == [1, 2]


@pytest.mark.parametrize('kind', [str, float])
def test_ids_may_be_text_or_floats(kind):
    def change(rows):
        for row in rows:
            row |= dict(image_id=kind(row['image_id']), category_id=kind(row['category_id']))
        return rows

    assert parse_coco(content(annotations=change), FILE) == parse_coco(content(), FILE)


def test_ids_may_be_those_of_a_data_base():
    """fiftyone#1696: two that are one number as floats."""
    ids = 9007199254740993, 9007199254740992
    rows = [dict(id=one, name=name) for one, name in zip(ids, ('bar', 'square'), strict=True)]

    def change(annotations):
        return [dict(row, category_id=ids[row['category_id'] - 5]) for row in annotations]

    found = parse_coco(content(annotations=change, categories=rows), FILE)
    assert [one.name for one in found.images[0].objects] == ['bar', 'square']


@pytest.mark.parametrize(
    'as_mapping',
    [
        lambda rows: {str(row['id']): row['name'] for row in rows},
        lambda rows: {row['name']: row['id'] for row in rows},
        lambda rows: {str(row['id']): dict(name=row['name']) for row in rows},
    ],
)
def test_categories_may_be_a_mapping(as_mapping):
    assert parse_coco(content(categories=as_mapping), FILE) == parse_coco(content(), FILE)


@pytest.mark.parametrize('entries', [dict(id=None), dict(id=7), dict(iscrowd=None)])
def test_what_tools_leave_out_costs_no_object(entries):
    assert first_object(**entries).box == [30, 40, 30, 4]


def test_null_is_no_name():
    found = parse_coco(content(categories=lambda rows: [dict(rows[0], name=None), rows[1]]), FILE)
    assert found.names == ['', 'square']


def test_images_of_lvis_have_a_url_in_place_of_a_name():
    url = 'http://images.org/train2017/1.jpg'
    found = parse_coco(content(images=lambda rows: [dict(id=0, coco_url=url), rows[1]]), FILE)
    assert (found.images[0].name, found.images[0].stated) == (url, (0, 0))


OUTLINE = [30, 40, 60, 40, 60, 44, 30, 44]
RUNS = dict(size=[48, 64], counts=[3000, 72])


@pytest.mark.parametrize(
    ('written', 'wanted'),
    [
        ([OUTLINE], [OUTLINE]),
        (OUTLINE, [OUTLINE]),  # without the list around it
        ([OUTLINE, [], [1, 1, 2, 2]], [OUTLINE, [1, 1, 2, 2]]),
        (RUNS, RUNS),
        ([RUNS], RUNS),
        ([], None),
        ([[]], None),
        (None, None),
    ],
)
def test_masks_are_polygons_or_run_lengths(written, wanted):
    assert first_object(segmentation=written).segmentation == wanted


@pytest.mark.parametrize(
    ('box', 'wanted'), [('1234', ['1234']), ([], ()), (None, ()), ([1, 2], [1, 2])]
)
def test_a_box_stays_as_it_is_written(box, wanted):
    """Without one, it is that around the outline: detectron2#1531."""
    found = first_object(bbox=box)
    assert [*found.box] == [*wanted]
    assert found.segmentation == [OUTLINE]


@pytest.mark.parametrize(
    ('key', 'value'),
    [
        ('iscrowd', '1'),
        ('iscrowd', 1.0),
        ('ignore', 1),
        ('Difficult', True),
        ('attributes', dict(difficult='true')),
        ('extra', dict(flags=dict(ignore='yes'))),
    ],
)
def test_groups_and_ignored_objects_are_marked(key, value):
    assert first_object(**{key: value}).crowd
    assert not first_object(**{key: 0}).crowd
    assert not first_object(metadata=dict(ignore=1)).crowd


@pytest.mark.parametrize(
    'entries', [dict(rotation=30.0), dict(attributes=dict(rotation=30.0, occluded=False))]
)
def test_a_box_may_be_turned(entries):
    """cvat#4745, label-studio-converter#131."""
    assert first_object(**entries).degrees == 30
    # This is not of the box.
    assert first_object(meta=dict(camera=dict(rotation=45))).degrees is None
