"""The steps from what a reader found to a listing, the same for every task."""

from pathlib import Path

import numpy as np
import pytest
from foreign_data import save, write
from listings import notes_of, sizes_of
from rejection import rejects

from anyfolder.readers.build_listing import (
    BOXES,
    DEPTH,
    MASKS,
    ONE_LABEL,
    SEGMENTS,
    SEVERAL_LABELS,
    Draft,
    apply_lists,
    build_listing,
)
from anyfolder.readers.findings import Findings
from anyfolder.readers.image_tree import Tree
from anyfolder.readers.records import ImageRecord, Instance
from anyfolder.readers.split_lists import Lists

TASKS = (BOXES, SEGMENTS, MASKS, DEPTH, ONE_LABEL, SEVERAL_LABELS)
WITH_CLASSES = [task for task in TASKS if task.least]


def draft(folder: Path, task, *labels: str, split=None, **options) -> Draft:
    """What a reader found: an image for each label, with an object of this class."""
    records = []
    for i, name in enumerate(labels):
        save(folder, f'{i}.png', np.full((48, 64, 3), 9 * i, np.uint8))
        path = folder / f'{i}.png'
        record = ImageRecord(path, split, origin=f'{i}.json')
        if task in (BOXES, SEGMENTS) and name:
            record.instances = [Instance(name, (1, 2, 3, 4), area=12, origin=f'{i}.json')]
        elif name:
            record.labels = (name,)
        records.append(record)
    return Draft(task, 'images', Tree(folder), records, **options)


@pytest.mark.parametrize('task', TASKS)
def test_a_tenth_is_held_out_and_the_rest_is_complete(tmp_path, task):
    found = build_listing(draft(tmp_path, task, *'abababababab'), Findings())
    assert (sizes_of(found), found.held_out) == ([11, 1, 0], True)
    assert found.classes == ('a', 'b')
    assert {record.size for record in found.train} == {(64, 48)}


@pytest.mark.parametrize('task', WITH_CLASSES)
def test_nothing_to_train_on_is_an_error_for_every_task(tmp_path, task):
    with rejects(f'no image of .* to train on has {task.has}; add some'):
        build_listing(draft(tmp_path, task, *[''] * 10, names=['a']), Findings())


@pytest.mark.parametrize('task', WITH_CLASSES)
def test_what_a_list_takes_away_may_leave_nothing(tmp_path, task):
    """All images with a class are to be tested by a list."""
    found = draft(tmp_path, task, *'aaaa', *[''] * 6)
    write(tmp_path, 'test.txt', ''.join(f'{i}.png\n' for i in range(4)))
    found.tree = Tree(tmp_path)
    with rejects(f'no image of .* to train on has {task.has}'):
        build_listing(found, Findings())


@pytest.mark.parametrize('task', [task for task in WITH_CLASSES if task.least == 1])
def test_what_is_held_out_may_leave_nothing(tmp_path, task):
    found = draft(tmp_path, task, *[''] * 10)
    for number in range(10):
        named = draft(tmp_path, task, *('a' if i == number else '' for i in range(10)))
        held = build_listing(draft(tmp_path, DEPTH, *[''] * 10), Findings()).val[0].path
        if named.records[number].path == held:
            found = named
    # One class is too few before any is held out.
    few = 'one class to train on' if task.least > 1 else f'no image of .* has {task.has}'
    with rejects(few):
        build_listing(found, Findings())


@pytest.mark.parametrize('task', WITH_CLASSES)
def test_what_is_compared_with_the_pixels_may_leave_nothing(tmp_path, task):
    def without_labels(records):
        for record in records:
            record.instances, record.labels = [], ()
        return records

    with rejects(f'no image of .* to train on has {task.has}'):
        build_listing(draft(tmp_path, task, *'abababababab'), Findings(), without_labels)


@pytest.mark.parametrize('task', WITH_CLASSES)
@pytest.mark.parametrize('labels', ['aaaaaaaaaaab', 'aaaaaaaaaaaa'])
def test_one_class_is_too_few_for_a_classifier_alone(tmp_path, task, labels):
    """The only image of another one cannot be read."""
    found, findings = draft(tmp_path, task, *labels, hint='put more there'), Findings()
    (tmp_path / '11.png').write_bytes(b'not an image')
    if task is not ONE_LABEL:
        build_listing(found, findings)
        return
    with rejects(
        r"has one class to train on, 'a' \(images left out, since they cannot be re.*: 1"
    ) as error:
        build_listing(found, findings)
    assert 'and a classifier needs two or more; put more there.' in str(error.value)


def test_classes_without_an_image_to_train_on_are_named_where_too_few_are_left(tmp_path):
    found = draft(tmp_path, ONE_LABEL, *'ababab')
    for record in found.records:
        record.split = dict(a='train', b='test')[record.labels[0]]
    with rejects(
        r"one class to train on, 'a' \(only for validation or test: 'b'\), and a classifier"
    ):
        build_listing(found, Findings())


def test_crowds_are_nothing_to_train_on(tmp_path):
    found = draft(tmp_path, BOXES, *'aaaa')
    for record in found.records:
        record.instances[0].crowd = True
    findings = Findings()
    findings.warn('objects marked as crowd', 'line 3')
    with rejects(r'to train on has a box \(objects marked as crowd: 1\)'):
        build_listing(found, findings)


def test_classes_are_in_the_order_of_the_names_and_have_something_to_train_on(tmp_path):
    found = build_listing(draft(tmp_path, BOXES, *'abababab', names=['c', 'b', 'a']), Findings())
    assert found.classes == ('b', 'a')
    what = 'class names left out, since no training object has them'
    assert notes_of(found) == [(what, 1)]


def test_numbers_in_files_keep_their_classes(tmp_path):
    found = draft(tmp_path, MASKS, *'abababab', names=['c', 'b', 'a'])
    assert build_listing(found, Findings()).classes == ('c', 'b', 'a')


def test_names_may_be_known_from_the_pixels(tmp_path):
    found = draft(tmp_path, MASKS, *'abababab')

    def compare(records):
        found.names = ['b', 'a']
        return records

    assert build_listing(found, Findings(), compare).classes == ('b', 'a')


@pytest.mark.parametrize('task', [BOXES, ONE_LABEL])
def test_a_class_that_only_the_held_out_have_is_named(tmp_path, task):
    held = build_listing(draft(tmp_path, DEPTH, *[''] * 10), Findings()).val[0].path
    labels = ['c' if f'{i}.png' == held.name else 'ab'[i % 2] for i in range(10)]
    found = build_listing(draft(tmp_path, task, *labels), Findings())
    assert found.classes == ('a', 'b')
    what = {
        BOXES: 'objects left out, since no other has their class',
        ONE_LABEL: 'classes with validation data, but no training data',
    }[task]
    assert notes_of(found) == [(what, 1)]


def test_a_class_to_validate_that_is_not_trained_on_is_an_error(tmp_path):
    found = draft(tmp_path, BOXES, *'ababac')
    for record in found.records:
        record.split = 'val' if record.instances[0].name == 'c' else 'train'
    with rejects("'5.json', to validate, has the class 'c', which has no training data"):
        build_listing(found, Findings())


def test_files_that_nothing_was_read_from_are_named(tmp_path):
    found = draft(tmp_path, ONE_LABEL, *'abababab', used=[tmp_path / 'labels.csv'])
    for name in ('labels.csv', 'notes.md'):
        write(tmp_path, name, 'a')
    save(tmp_path, 'other.png', np.zeros((4, 4), np.uint8))
    found.tree = Tree(tmp_path)
    listing = build_listing(found, Findings())
    assert notes_of(listing) == [
        ('files left out, .md', 1),
        ('images left out, since they have no label or list entry', 1),
    ]


def test_annotations_are_no_lists(tmp_path):
    """train.json lists the images of its split as COCO does, and may have more strings."""
    found = draft(tmp_path, ONE_LABEL, *'abababab', used=[tmp_path / 'test.json'])
    write(tmp_path, 'test.json', '["0.png"]')
    found.tree = Tree(tmp_path)
    assert sizes_of(build_listing(found, Findings())) == [7, 1, 0]


def record(name: str, split=None) -> ImageRecord:
    return ImageRecord(Path(name), split)


def test_an_image_is_of_the_split_furthest_from_training():
    lists = Lists({Path('a'): 'test', Path('b'): 'train', Path('c'): 'val', Path('d'): 'val'})
    records = [record('a', 'train'), record('b', 'val'), record('c'), record('d', 'test')]
    assert [one.split for one in apply_lists(records, lists)] == ['test', 'val', 'val', 'test']


@pytest.mark.parametrize(
    ('listed', 'kept'),
    [
        (dict(a='train'), ['a', 'c']),  # b and d are not in the list of those to train on
        (dict(a='test'), ['a', 'b', 'c', 'd']),
        (dict(a='val'), ['a', 'b', 'd']),
        ({}, ['a', 'b', 'c', 'd']),
    ],
)
def test_where_a_list_names_a_split_others_are_not_of_it(listed, kept):
    lists = Lists({Path(name): split for name, split in listed.items()})
    records = [record('a'), record('b'), record('c', 'val'), record('d', 'train')]
    assert [one.path.name for one in apply_lists(records, lists)] == kept
