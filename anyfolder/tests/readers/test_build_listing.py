"""The steps from a reader's draft to a listing, the same for every task."""

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
WITH_CLASSES = [task for task in TASKS if task.min_classes]


def make_draft(folder: Path, task, *labels: str, split=None, **options) -> Draft:
    """A reader's draft of an image for each label, which is its class or that of its object.

    An empty label stands for an image without a label.
    """
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
def test_a_tenth_of_the_images_is_held_out(tmp_path, task):
    listing = build_listing(make_draft(tmp_path, task, *'abababababab'), Findings())
    assert (sizes_of(listing), listing.held_out) == ([11, 1, 0], True)
    assert listing.classes == ('a', 'b')
    assert {record.size for record in listing.train} == {(64, 48)}


@pytest.mark.parametrize('task', WITH_CLASSES)
def test_images_without_labels_raise_for_every_task(tmp_path, task):
    with rejects(f'no image of .* to train on has {task.required_label}; add some'):
        build_listing(make_draft(tmp_path, task, *[''] * 10, names=['a']), Findings())


@pytest.mark.parametrize('task', WITH_CLASSES)
def test_list_that_leaves_no_training_labels_raises(tmp_path, task):
    """All images with a class are in the test list."""
    draft = make_draft(tmp_path, task, *'aaaa', *[''] * 6)
    write(tmp_path, 'test.txt', ''.join(f'{i}.png\n' for i in range(4)))
    draft.tree = Tree(tmp_path)
    with rejects(f'no image of .* to train on has {task.required_label}'):
        build_listing(draft, Findings())


def held_out_number(folder: Path) -> int:
    """Which of ten images is held out; the labels do not matter."""
    [record] = build_listing(make_draft(folder, DEPTH, *[''] * 10), Findings()).val
    return int(record.path.stem)


@pytest.mark.parametrize('task', [task for task in WITH_CLASSES if task.min_classes == 1])
def test_holding_out_the_only_labeled_image_raises(tmp_path, task):
    held_out = held_out_number(tmp_path)
    draft = make_draft(tmp_path, task, *('a' if i == held_out else '' for i in range(10)))
    with rejects(f'no image of .* has {task.required_label}'):
        build_listing(draft, Findings())


@pytest.mark.parametrize('task', WITH_CLASSES)
def test_comparison_with_pixels_that_leaves_no_labels_raises(tmp_path, task):
    def without_labels(records):
        for record in records:
            record.instances, record.labels = [], ()
        return records

    with rejects(f'no image of .* to train on has {task.required_label}'):
        build_listing(make_draft(tmp_path, task, *'abababababab'), Findings(), without_labels)


def draft_with_unreadable_image(folder: Path, task, labels: str) -> Draft:
    """A draft of twelve images, the last of which cannot be read."""
    draft = make_draft(folder, task, *labels, hint='put more there')
    (folder / '11.png').write_bytes(b'not an image')
    return draft


@pytest.mark.parametrize('task', [task for task in WITH_CLASSES if task is not ONE_LABEL])
@pytest.mark.parametrize('labels', ['aaaaaaaaaaab', 'aaaaaaaaaaaa'])
def test_one_readable_class_is_enough_for_other_tasks_than_classification(tmp_path, task, labels):
    build_listing(draft_with_unreadable_image(tmp_path, task, labels), Findings())


@pytest.mark.parametrize('labels', ['aaaaaaaaaaab', 'aaaaaaaaaaaa'])
def test_one_readable_class_is_too_few_for_classification(tmp_path, labels):
    draft = draft_with_unreadable_image(tmp_path, ONE_LABEL, labels)
    with rejects(
        r"has one class to train on, 'a' \(images left out, since they cannot be re.*: 1"
    ) as error:
        build_listing(draft, Findings())
    assert 'and a classifier needs two or more; put more there.' in str(error.value)


def test_error_on_too_few_classes_names_those_without_training_images(tmp_path):
    draft = make_draft(tmp_path, ONE_LABEL, *'ababab')
    for record in draft.records:
        record.split = dict(a='train', b='test')[record.labels[0]]
    with rejects(
        r"one class to train on, 'a' \(only for validation or test: 'b'\), and a classifier"
    ):
        build_listing(draft, Findings())


def test_crowds_are_not_training_objects(tmp_path):
    draft = make_draft(tmp_path, BOXES, *'aaaa')
    for record in draft.records:
        record.instances[0].crowd = True
    findings = Findings()
    findings.warn('objects marked as crowd', 'line 3')
    with rejects(r'to train on has a box \(objects marked as crowd: 1\)'):
        build_listing(draft, findings)


def test_classes_are_in_the_order_of_names_without_unused_ones(tmp_path):
    draft = make_draft(tmp_path, BOXES, *'abababab', names=['c', 'b', 'a'])
    listing = build_listing(draft, Findings())
    assert listing.classes == ('b', 'a')
    what = 'class names left out, since no training object has them'
    assert notes_of(listing) == [(what, 1)]


def test_unused_classes_of_masks_are_kept(tmp_path):
    draft = make_draft(tmp_path, MASKS, *'abababab', names=['c', 'b', 'a'])
    assert build_listing(draft, Findings()).classes == ('c', 'b', 'a')


def test_class_names_may_come_from_the_comparison_with_pixels(tmp_path):
    draft = make_draft(tmp_path, MASKS, *'abababab')

    def compare(records):
        draft.names = ['b', 'a']
        return records

    assert build_listing(draft, Findings(), compare).classes == ('b', 'a')


@pytest.mark.parametrize('task', [BOXES, ONE_LABEL])
def test_class_of_only_the_held_out_image_is_reported(tmp_path, task):
    held_out = held_out_number(tmp_path)
    labels = ['c' if i == held_out else 'ab'[i % 2] for i in range(10)]
    listing = build_listing(make_draft(tmp_path, task, *labels), Findings())
    assert listing.classes == ('a', 'b')
    what = {
        BOXES: 'objects left out, since no training object has their class',
        ONE_LABEL: 'classes with validation data, but no training data',
    }[task]
    assert notes_of(listing) == [(what, 1)]


def test_validation_class_without_training_data_raises(tmp_path):
    draft = make_draft(tmp_path, BOXES, *'ababac')
    for record in draft.records:
        record.split = 'val' if record.instances[0].name == 'c' else 'train'
    with rejects("'5.json', to validate, has the class 'c', which has no training data"):
        build_listing(draft, Findings())


def test_unused_files_are_reported(tmp_path):
    draft = make_draft(tmp_path, ONE_LABEL, *'abababab', used_files=[tmp_path / 'labels.csv'])
    for name in ('labels.csv', 'notes.md'):
        write(tmp_path, name, 'a')
    save(tmp_path, 'other.png', np.zeros((4, 4), np.uint8))
    draft.tree = Tree(tmp_path)
    listing = build_listing(draft, Findings())
    assert notes_of(listing) == [
        ('files left out, .md', 1),
        ('images left out, since they have no label or list entry', 1),
    ]


def test_used_annotation_files_are_not_lists(tmp_path):
    """Such as ``test.json`` in COCO's format, which has names of images."""
    draft = make_draft(tmp_path, ONE_LABEL, *'abababab', used_files=[tmp_path / 'test.json'])
    write(tmp_path, 'test.json', '["0.png"]')
    draft.tree = Tree(tmp_path)
    assert sizes_of(build_listing(draft, Findings())) == [7, 1, 0]


def record(name: str, split=None) -> ImageRecord:
    return ImageRecord(Path(name), split)


def test_image_in_several_splits_gets_the_one_furthest_from_training():
    lists = Lists({Path('a'): 'test', Path('b'): 'train', Path('c'): 'val', Path('d'): 'val'})
    records = [record('a', 'train'), record('b', 'val'), record('c'), record('d', 'test')]
    assert [listed.split for listed in apply_lists(records, lists)] == [
        'test',
        'val',
        'val',
        'test',
    ]


@pytest.mark.parametrize(
    ('listed', 'kept'),
    [
        (dict(a='train'), ['a', 'c']),  # b and d are not in the training list
        (dict(a='test'), ['a', 'b', 'c', 'd']),
        (dict(a='val'), ['a', 'b', 'd']),
        ({}, ['a', 'b', 'c', 'd']),
    ],
)
def test_unlisted_images_are_left_out_of_a_listed_split(listed, kept):
    lists = Lists({Path(name): split for name, split in listed.items()})
    records = [record('a'), record('b'), record('c', 'val'), record('d', 'train')]
    assert [listed.path.name for listed in apply_lists(records, lists)] == kept
