"""COCO's JSON, and the variants of it that programs write."""

import json
from pathlib import Path

import pytest
from foreign_data import coco_json

from anyfolder.readers.formats.coco import is_coco, parse_coco

FILE = Path('instances.json')


def content(**changes) -> dict:
    """Two images with a bar and a square each.

    Args:
        changes: new values of entries, or functions that return one for the old value.
    """
    boxes = [('bar', (30, 40, 60, 44)), ('square', (5, 6, 21, 22))]
    coco = json.loads(coco_json(['0.jpg', 'photos/1.jpg'], [boxes, boxes], first_id=5))
    for key, change in changes.items():
        coco[key] = change(coco[key]) if callable(change) else change
    return coco


def first_object(**entries):
    """The first object, with these entries in its annotation; None removes an entry."""

    def change(rows):
        rows[0] |= entries
        rows[0] = {key: value for key, value in rows[0].items() if value is not None}
        return rows

    return parse_coco(content(annotations=change), FILE).images[0].objects[0]


def test_images_have_their_objects_as_they_are_written():
    parsed = parse_coco(content(), FILE)
    assert [(image.name, image.stated_size) for image in parsed.images] == [
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
    ('value', 'fits'),
    [
        (content(), True),
        (content(annotations=[]), True),  # a split without objects
        # iNaturalist's image labels
        (content(annotations=[dict(image_id=0, category_id=1)]), False),
        (content(annotations=[dict(image_id=0, caption='a bar')]), False),
        (dict(images=[], annotations=[]), False),
        ([dict(image_id=0, bbox=[1, 2, 3, 4])], False),  # results of a detector
        ({}, False),
        (None, False),
    ],
)
def test_coco_files_are_recognized_by_their_boxes(value, fits):
    assert is_coco(value, FILE) == fits


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
def test_incomplete_files_raise(change, words):
    with pytest.raises((KeyError, TypeError, ValueError, AttributeError), match=words):
        parse_coco(content(**change), FILE)


@pytest.mark.parametrize(
    ('entries', 'what', 'example'),
    [
        (dict(image_id=9), 'annotations belong to images that their file does not list', '9 of'),
        (dict(category_id=8), 'annotations have a category that their file does not list', '8 of'),
    ],
)
def test_unlisted_images_and_categories_become_faults(entries, what, example):
    def change(rows):
        rows[0] |= entries
        return rows

    parsed = parse_coco(content(annotations=change), FILE)
    [fault] = parsed.faults
    assert fault.what == what
    assert fault.example.startswith(f'{example} annotation 0 in ')
    assert fault.remedy
    assert [len(image.objects) for image in parsed.images] == [1, 2]


@pytest.mark.parametrize('as_id', [str, float])
def test_ids_may_be_text_or_floats(as_id):
    def change(rows):
        for row in rows:
            row |= dict(image_id=as_id(row['image_id']), category_id=as_id(row['category_id']))
        return rows

    assert parse_coco(content(annotations=change), FILE) == parse_coco(content(), FILE)


def test_large_ids_are_not_compared_as_floats():
    """fiftyone#1696: both ids are the same number as floats."""
    ids = 9007199254740993, 9007199254740992
    categories = [dict(id=ids[0], name='bar'), dict(id=ids[1], name='square')]

    def change(annotations):
        return [dict(row, category_id=ids[row['category_id'] - 5]) for row in annotations]

    parsed = parse_coco(content(annotations=change, categories=categories), FILE)
    assert [found.name for found in parsed.images[0].objects] == ['bar', 'square']


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
def test_annotation_id_and_iscrowd_are_optional(entries):
    assert first_object(**entries).box == [30, 40, 30, 4]


def test_category_name_of_null_is_empty():
    parsed = parse_coco(content(categories=lambda rows: [dict(rows[0], name=None), rows[1]]), FILE)
    assert parsed.names == ['', 'square']


def test_lvis_images_have_a_url_instead_of_a_name():
    url = 'http://images.org/train2017/1.jpg'
    parsed = parse_coco(content(images=lambda rows: [dict(id=0, coco_url=url), rows[1]]), FILE)
    assert (parsed.images[0].name, parsed.images[0].stated_size) == (url, (0, 0))


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
def test_missing_and_invalid_boxes_are_kept_as_written(box, wanted):
    """A missing box is computed from the outline, but not here (detectron2#1531)."""
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
    assert not first_object(metadata=dict(ignore=1)).crowd  # not of the object


@pytest.mark.parametrize(
    'entries', [dict(rotation=30.0), dict(attributes=dict(rotation=30.0, occluded=False))]
)
def test_rotation_of_a_box_is_read(entries):
    """cvat#4745, label-studio-converter#131."""
    assert first_object(**entries).degrees == 30
    # A rotation of the camera is not one of the box.
    assert first_object(meta=dict(camera=dict(rotation=45))).degrees is None
