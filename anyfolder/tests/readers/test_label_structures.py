"""Label columns with JSON, lists or dictionaries in their cells."""

import csv
import json
from pathlib import Path

import pytest
from image_folders import write_flat
from listings import notes_of
from rejection import rejects

from anyfolder.readers.class_folders import read_class_folders
from anyfolder.readers.image_tree import Tree
from anyfolder.readers.label_structures import structure_reader
from anyfolder.readers.listing import Listing


def read(folder, values) -> Listing:
    """Twelve images, and a table with these values in turn."""
    write_flat(folder, 12)
    with open(folder / 'labels.csv', 'w', newline='') as file:
        rows = [(f'{i}.jpg', values[i % len(values)]) for i in range(12)]
        csv.writer(file).writerows([('file', 'label'), *rows])
    return read_class_folders(Tree(folder))


@pytest.mark.parametrize(
    ('values', 'classes', 'is_multi_label'),
    [
        (['["cat"]', '["dog"]', '["cat", "dog"]'], ('cat', 'dog'), True),
        (['["cat"]', '["dog"]'], ('cat', 'dog'), False),
        (["['cat']", "['dog']"], ('cat', 'dog'), False),
        # label-studio-converter#59: one choice is text, several are JSON
        (['cat', 'dog', '{"choices": ["cat", "dog"]}'], ('cat', 'dog'), True),
        (['{"choices": "cat"}', '{"choices": "dog"}'], ('cat', 'dog'), False),
        (['{"cat": 1, "dog": 0}', '{"cat": 1, "dog": true}'], ('cat', 'dog'), True),
        (['[{"label": "cat"}]', '[{"label": "dog"}]'], ('cat', 'dog'), False),
        (['{"name": "cat", "id": 3}', '{"name": "dog", "id": 4}'], ('cat', 'dog'), False),
        (['[3]', '[17, 3]'], ('17', '3'), True),
        (["{'cat'}", "{'dog'}", "{'cat', 'dog'}"], ('cat', 'dog'), True),
        (["('cat',)", "('dog',)"], ('cat', 'dog'), False),
        (['{"choices": []}', 'cat', 'dog', 'cat', 'dog'], ('cat', 'dog'), False),
        (['[cat', 'dog]'], ('cat', 'dog'), False),  # stray brackets are stripped
        (['<cat>', '<unknown>'], ('<cat>', '<unknown>'), False),  # not XML
    ],
)
def test_class_names_in_structures_are_read(tmp_path, values, classes, is_multi_label):
    listing = read(tmp_path, values)
    assert (listing.classes, listing.multi_label) == (classes, is_multi_label)


BOX = dict(x=10, y=20, width=30, height=25, rotation=0, rectanglelabels=['Car'])


@pytest.mark.parametrize(
    ('values', 'words'),
    [
        (
            [json.dumps([BOX]), 'Car'],
            r'has JSON of regions such as \[\{"x": 10, .*task=.detection',
        ),
        (['{"bbox": [1, 2, 3, 4], "label": "cat"}', 'dog'], 'has JSON of regions such as'),
        (
            ['[1, 0, 0]', '[0, 1, 1]'],
            r'has vectors of 0 and 1 such as \[[01, ]*\], .* write the class nam',
        ),
        (['[1. 0. 0.]', '[0. 1. 1.]'], 'has vectors of 0 and 1'),
        (['1 0 0', '0 1 1'], 'has vectors of 0 and 1'),
        (['{"cat": 0.9, "dog": 0.1}', '{"cat": 0.3, "dog": 0.7}'], 'has JSON such as {"cat": 0'),
        (['[null]', '["cat"]'], 'has JSON such as'),
        (['{"choices": ["cat", "d', 'cat'], 'has JSON such as'),  # cut off
        (['<object><name>cat</name></object>', '<object/>'], 'has XML such as <object'),
    ],
)
def test_structures_without_class_names_raise(tmp_path, values, words):
    with rejects(words):
        read(tmp_path, values)


def test_lines_of_json_keep_their_structure(tmp_path):
    write_flat(tmp_path, 12)
    rows = [dict(file=f'{i}.jpg', label={'name': ('cat', 'dog')[i % 2]}) for i in range(12)]
    (tmp_path / 'labels.jsonl').write_text('\n'.join(map(json.dumps, rows)))
    listing = read_class_folders(Tree(tmp_path))
    assert listing.classes == ('cat', 'dog')
    assert notes_of(listing) == []


def test_choice_column_of_label_studio_holds_labels(tmp_path):
    write_flat(tmp_path, 12)
    rows = [f'{i},{("cat", "dog")[i % 2]},{i},3.5' for i in range(12)]
    (tmp_path / 'a.csv').write_text('\n'.join(['image,choice,annotation_id,lead_time', *rows]))
    assert read_class_folders(Tree(tmp_path)).classes == ('cat', 'dog')


@pytest.mark.parametrize(
    'text', ['<' + 'a' * 200_000, '("a"' + ' ' * 200_000 + 'b)'], ids=['tag', 'blanks']
)
def test_long_text_that_begins_like_a_structure_is_read_at_once(text):
    """It took a time that grew with the square of the length."""
    assert structure_reader([text], 'label', Path('labels.csv'))(text) is None
