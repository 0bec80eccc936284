"""Similarities of position embeddings, for models with each kind of positions."""

import pytest
import torch
from rejection import rejects
from visualization_models import build

from vit_plugin.report.pictures import draw_position_similarity, position_similarity


@pytest.mark.parametrize(
    ('kind', 'options'),
    [
        ('registers', {}),
        ('plain', dict(pos_embed='learned_2d')),
        ('plain', dict(pos_embed='sincos2d')),
        ('plain', dict(img_size=(24, 32))),
        ('rotary', {}),
        ('rotary_mixed', {}),
        ('rotary_windows', {}),
    ],
)
def test_similarity_is_symmetric_and_1_on_the_diagonal(tiny, kind, options):
    model = build(kind, tiny, **options)
    similarity = position_similarity(model)
    h, w = model.position.grid
    assert similarity.shape == (h, w, h, w)
    flat = similarity.flatten(2).flatten(0, 1)
    torch.testing.assert_close(flat.diagonal(), torch.ones(h * w))
    torch.testing.assert_close(flat, flat.T)


def test_similarity_of_a_learned_table_is_the_cosine_of_its_rows(tiny):
    model = build('registers', tiny)
    table = model.pos_embed.detach()[0, 4:]
    expected = torch.cosine_similarity(table[5], table[10], dim=0)
    torch.testing.assert_close(position_similarity(model)[1, 1, 2, 2], expected)


def test_similarity_of_rotary_positions_decreases_with_distance(tiny):
    similarity = position_similarity(build('rotary', tiny, img_size=64))
    assert similarity[3, 3, 3, 4] > similarity[3, 3, 3, 7]


@pytest.mark.parametrize('kind', ['relative', 'relative_windows'])
def test_relative_positions_raise(tiny, kind):
    with rejects('no positions of single patches'):
        position_similarity(build(kind, tiny))


def test_large_grids_have_fewer_tiles():
    figure = draw_position_similarity(torch.rand(2, 30, 2, 30))
    tiles = figure.axes[0]
    assert [label.get_text() for label in tiles.get_xticklabels()] == [
        str(column) for column in range(1, 30, 3)
    ]
    assert [label.get_text() for label in tiles.get_yticklabels()] == ['1']
