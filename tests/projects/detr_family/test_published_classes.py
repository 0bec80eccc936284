"""Class names of published detectors, and rows of their layers that stand for no class."""

import pytest
import torch

from vit_plugin.projects.detr_family.published_classes import DetectorClasses, stated_names
from vit_plugin.weights.opening import Checkpoint
from vit_plugin.weights.published import Published


@pytest.mark.parametrize(
    ('rows', 'names', 'first', 'unused'),
    [
        (91, {}, 'person', [0, 12, 26, 29, 30, 45, 66, 68, 69, 71, 83]),
        (90, {}, 'person', [11, 25, 28, 29, 44, 65, 67, 68, 70, 82]),
        (80, {}, 'person', []),
        (3, {}, 'class 0', [2]),
        (3, {0: 'cat', 1: 'dog'}, 'cat', [2]),
        (2, {0: 'cat', 1: 'dog'}, 'cat', []),
        (3, {0: 'N/A', 1: 'cat', 2: 'dog'}, 'cat', [0]),
    ],
)
def test_unused_rows_have_no_class_name(rows, names, first, unused):
    classes = DetectorClasses(rows, names)
    assert classes.names[0] == first
    assert classes.unused == unused
    assert len(classes.names) == rows - len(unused)


def test_coco_names_are_placed_at_their_category_ids():
    coco_names = DetectorClasses(91, {}).names
    listed = DetectorClasses(91, dict(enumerate(coco_names)))
    assert (listed.names, listed.unused) == (coco_names, DetectorClasses(91, {}).unused)
    assert coco_names[-1] == 'toothbrush'
    # With another number of rows, each name stays in its row.
    assert DetectorClasses(81, dict(enumerate(coco_names))).unused == [80]


@pytest.mark.parametrize('count', [3, 91])
def test_default_names_are_ignored_if_the_count_is_that_of_coco(count):
    labels = {i: f'LABEL_{i}' for i in range(count)}
    weights = {'some.layer.weight': torch.ones(2, 2)}
    published = Published(Checkpoint('a', weights, dict(config=dict(id2label=labels))))
    assert stated_names(published) == (labels if count == 3 else {})


def test_names_without_a_row_are_reported(monkeypatch):
    messages: list[str] = []
    monkeypatch.setattr(
        'vit_plugin.projects.detr_family.published_classes.print_log',
        lambda text, *_: messages.append(text),
    )
    assert DetectorClasses(2, {0: 'cat', 1: 'dog'}).names == ['cat', 'dog']
    assert messages == []
    assert DetectorClasses(2, {0: 'cat', 1: 'dog', 2: 'owl'}).names == ['cat', 'dog']
    assert len(messages) == 1
    assert 'owl' in messages[0]
