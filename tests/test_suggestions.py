"""Suggestions of known names for a wrong one."""

import pytest

from vit_plugin.suggestions import closest, suggestion, unscoped

SCOPED = ['mmdet.ResNet', 'mmpretrain.ResNet', 'mmpretrain.VGG']


def test_the_most_similar_comes_first():
    assert closest('max_epoch', ['by_epoch', 'max_epochs', 'lr'], max_names=2) == [
        'max_epochs',
        'by_epoch',
    ]
    assert closest('Resnet', SCOPED, key=unscoped) == SCOPED[:2]
    assert closest('nothing', SCOPED) == []


@pytest.mark.parametrize(
    ('name', 'known', 'sentence'),
    [
        ('vgg', ['VGG', 'ResNet'], 'did you mean VGG?'),
        ('x', ['a', 'b'], 'there are a, b.'),
        ('x', [], 'there are none.'),
        (3, ['a'], 'there are a.'),
        ('x1', [f'name{i}' for i in range(99)], 'the nearest are name1, name91, name81.'),
    ],
)
def test_suggestion_names_the_known_names(name, known, sentence):
    assert suggestion(name, known) == sentence


def test_long_lists_are_replaced_by_the_alternative():
    assert suggestion('x', [f'name{i}' for i in range(99)], instead_of_list='ask.') == 'ask.'
