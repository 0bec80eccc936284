"""The fields that patterns find in paths."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rejection import rejects

from anyfolder.layouts.path_pattern import PathPattern


@pytest.mark.parametrize(
    ('pattern', 'path', 'fields'),
    [
        ('{split}/images/{name}.*', 'train/images/a.b.jpg', dict(split='train', name='a.b')),
        ('**/{class}/*.jpg', 'x/y/cat/1.jpg', {'class': 'cat'}),
        ('**/{class}/*.jpg', 'cat/1.jpg', {'class': 'cat'}),
        ('{place:**}/image/*.jpg', 'kv1/NYU/1/image/a.jpg', dict(place='kv1/NYU/1')),
        ('{class}/{class}_{n:\\d+}.jpg', 'cat/cat_12.jpg', {'class': 'cat', 'n': '12'}),
        ('{class}/{class}_{n:\\d+}.jpg', 'cat/dog_12.jpg', None),
        ('{split:train|val}/x.jpg', 'test/x.jpg', None),
        ('{_}/{n:\\d{3}}.png', 'a/123.png', dict(n='123')),
        ('{n:\\d{2,3}}.png', '123.png', dict(n='123')),
        ('{n:\\d{2,3}}.png', '1.png', None),
        ('a+b/(*).jpg', 'a+b/(1).jpg', {}),
        ('*.jpg', 'a/b.jpg', None),
        ('**', 'a/b.jpg', {}),
        ('Gr\u00fcn/*', 'Gru\u0308n/1.jpg', {}),  # a composed and a decomposed umlaut
        ('Gru\u0308n/*', 'Gru\u0308n/1.jpg', {}),
    ],
)
def test_fields_of_a_path(pattern, path, fields):
    assert PathPattern(pattern, 'images').match(path) == fields


def test_too_large_a_repetition_raises():
    with rejects('is not a regular expression .*; correct it'):
        PathPattern('{n:\\d{99999999999}}.png', 'images')


@given(st.text(st.characters(codec='ascii', exclude_characters='*{}\\~'), min_size=1))
def test_plain_patterns_match_only_their_own_path(text):
    if text.startswith('/') or '..' in text.split('/'):  # not a path below the folder
        return
    pattern = PathPattern(text, 'images')
    assert pattern.match(text) == {}
    assert pattern.match(f'{text}.') is None
