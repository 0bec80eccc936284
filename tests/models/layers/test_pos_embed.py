"""Position tables: their values, rows and widths."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from rejection import rejects

from vit_plugin.models.layers.pos_embed import (
    POS_EMBEDS,
    Learned2dPosEmbed,
    LearnedPosEmbed,
    SinCos2dPosEmbed,
    build_positions,
)

sides = st.integers(1, 9)


@given(
    grid=st.tuples(sides, sides),
    kind=st.sampled_from(['learned', 'learned_2d']),
    prefix=st.integers(0, 3),
)
def test_resizing_keeps_the_prefix_rows(grid, kind, prefix):
    position = POS_EMBEDS[kind]((4, 5), 8, prefix)
    weight = torch.randn(position.shape)
    native, resized = position.table(weight, (4, 5)), position.table(weight, grid)
    assert resized.shape == (1, prefix + grid[0] * grid[1], 8)
    assert torch.equal(native[:, :prefix], resized[:, :prefix])


def test_learned_2d_concatenates_row_and_column():
    position = Learned2dPosEmbed((2, 3), 8, 1)
    weight = torch.randn(position.shape)
    table = position.table(weight, (2, 3))
    rows, columns = weight[0, 2:4], weight[0, 4:]
    assert torch.equal(table[0, 1 + 1 * 3 + 2], torch.cat((rows[1], columns[2])))
    assert torch.equal(table[0, 0], weight[0, :2].flatten())


def test_sincos_equals_the_published_formula():
    table = SinCos2dPosEmbed((3, 5), 16, 1).table(None, (3, 5)).reshape(3, 5, 16)
    omega = 1 / 10_000 ** (np.arange(4) / 3)
    y, x = 2, 4
    expected = np.concatenate(
        [np.sin(x * omega), np.cos(x * omega), np.sin(y * omega), np.cos(y * omega)]
    )
    np.testing.assert_allclose(table[y, x].numpy(), expected, atol=1e-5)


def test_sincos_of_another_grid_keeps_its_corners():
    position = SinCos2dPosEmbed((3, 5), 16, 0)
    native, finer = (position.table(None, grid).reshape(*grid, 16) for grid in ((3, 5), (7, 9)))
    for corner in ((0, 0), (0, -1), (-1, 0), (-1, -1)):
        torch.testing.assert_close(native[corner], finer[corner])


def test_the_grid_is_saved_with_a_learned_table():
    wide, tall = LearnedPosEmbed((3, 4), 8, 0), LearnedPosEmbed((4, 3), 8, 0)
    assert wide.state_dict()['_extra_state'].tolist() == [3, 4]
    tall.load_state_dict(wide.state_dict())
    tall.load_state_dict({})  # older and foreign checkpoints do not state the grid


@pytest.mark.parametrize(
    ('cfg', 'form'),
    [({}, 'decomposed'), (dict(relative='bias'), 'bias'), (dict(relative=True), 'decomposed')],
)
def test_the_type_relative_keeps_a_stated_form(cfg, form):
    position, actual, _ = build_positions(dict(type='relative', **cfg), (2, 2), 8, 0)
    assert (position.shape, actual) == (None, form)


@pytest.mark.parametrize(
    ('kind', 'width', 'words'), [('learned_2d', 7, 'even width'), ('sincos2d', 6, 'multiple of 4')]
)
def test_widths_that_do_not_divide_raise(kind, width, words):
    with rejects(words):
        POS_EMBEDS[kind]((4, 4), width, 1)
