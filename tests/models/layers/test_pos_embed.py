import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.ndimage import zoom

from vit_plugin.errors import ConfigError
from vit_plugin.models import VisionTransformer
from vit_plugin.models.layers.derived import MAX_KEPT
from vit_plugin.models.layers.pos_embed import (
    POS_EMBEDS,
    Learned2dPosEmbed,
    LearnedPosEmbed,
    SinCos2dPosEmbed,
    relative_table,
    resize_grid,
)

sides = st.integers(1, 9)


@settings(deadline=None)
@given(grid=st.tuples(sides, sides), mode=st.sampled_from(['bilinear', 'bicubic']))
def test_resize_to_the_same_grid_is_the_identity(grid, mode):
    table = torch.randn(1, grid[0] * grid[1], 4)
    assert resize_grid(table, grid, grid, mode) is table


@settings(deadline=None)
@given(old=st.tuples(sides, sides), new=st.tuples(sides, sides))
def test_bilinear_is_the_authors_zoom(old, new):
    table = torch.randn(1, old[0] * old[1], 3, dtype=torch.float32)
    factors = (new[0] / old[0], new[1] / old[1], 1)
    theirs = zoom(table.numpy().reshape(*old, 3), factors, order=1)
    ours = resize_grid(table, old, new).reshape(*new, 3)
    np.testing.assert_allclose(ours.numpy(), theirs, atol=1e-5)


@settings(deadline=None)
@given(grid=st.tuples(sides, sides), kind=st.sampled_from(['learned', 'learned_2d']), extra=st.integers(0, 3))
def test_extra_tokens_rows_survive_every_resize(grid, kind, extra):
    position = POS_EMBEDS[kind]((4, 5), 8, extra)
    weight = torch.randn(position.shape)
    native, resized = position.table(weight, (4, 5)), position.table(weight, grid)
    assert resized.shape == (1, extra + grid[0] * grid[1], 8)
    assert torch.equal(native[:, :extra], resized[:, :extra])


def test_learned_2d_joins_row_and_column():
    position = Learned2dPosEmbed((2, 3), 8, 1)
    weight = torch.randn(position.shape)
    table = position.table(weight, (2, 3))
    rows, columns = weight[0, 2:4], weight[0, 4:]
    assert torch.equal(table[0, 1 + 1 * 3 + 2], torch.cat((rows[1], columns[2])))
    assert torch.equal(table[0, 0], weight[0, :2].flatten())


def test_sincos_is_the_published_formula():
    table = SinCos2dPosEmbed((3, 5), 16, 1).table(None, (3, 5)).reshape(3, 5, 16)
    omega = 1 / 10_000 ** (np.arange(4) / 3)
    y, x = 2, 4
    expected = np.concatenate([np.sin(x * omega), np.cos(x * omega), np.sin(y * omega), np.cos(y * omega)])
    np.testing.assert_allclose(table[y, x].numpy(), expected, atol=1e-5)


def test_sincos_of_another_grid_keeps_its_corners():
    position = SinCos2dPosEmbed((3, 5), 16, 0)
    native, finer = (position.table(None, grid).reshape(*grid, 16) for grid in ((3, 5), (7, 9)))
    for corner in ((0, 0), (0, -1), (-1, 0), (-1, -1)):
        torch.testing.assert_close(native[corner], finer[corner])


@pytest.mark.parametrize('cls', [LearnedPosEmbed, SinCos2dPosEmbed])
def test_table_is_computed_once_per_grid_in_eval(cls, monkeypatch):
    position = cls((4, 4), 8, 1).eval()
    weight = torch.nn.Parameter(torch.randn(position.shape)) if position.shape else None
    calls = []
    table = position.table
    monkeypatch.setattr(position, 'table', lambda *args: calls.append(args) or table(*args))
    with torch.no_grad():
        for grid in ((5, 5), (5, 5), (3, 7), (5, 5)):
            position(torch.zeros(1, 1 + grid[0] * grid[1], 8), weight, grid)
    assert len(calls) == 2


def changes(weight: torch.nn.Parameter, model: VisionTransformer) -> dict:
    new = torch.randn_like(weight)

    def swap_past_autograd() -> None:  # as MMEngine's EMAHook does, before it calls eval()
        weight.data.copy_(new)
        model.eval()

    return dict(
        in_place=lambda: weight.copy_(new), replaced=lambda: setattr(weight, 'data', new),
        loaded=lambda: model.load_state_dict({**model.state_dict(), 'pos_embed': new}), swapped=swap_past_autograd)


@pytest.mark.parametrize('change', ['in_place', 'replaced', 'loaded', 'swapped'])
def test_cached_table_follows_the_weight(tiny, change):
    model = VisionTransformer(**tiny, out_type='raw').eval()
    images = torch.randn(1, 3, 40, 40)
    with torch.no_grad():
        before, = model(images)
        changes(model.pos_embed, model)[change]()
        after, = model(images)
        model.position._kept.clear()
        assert torch.equal(after, model(images)[0])
    assert not torch.equal(before, after)


def test_a_table_cached_under_inference_mode_can_train(tiny):
    model = VisionTransformer(**dict(tiny, pos_embed='sincos2d'))
    with torch.inference_mode():
        model(torch.randn(1, 3, 32, 32))
    model(torch.randn(1, 3, 32, 32))[0].sum().backward()
    assert model.cls_token.grad is not None


@pytest.mark.filterwarnings('ignore:There is a performance drop')  # of vmap over attention
def test_tables_of_ensembles_and_of_inference_tensors_are_not_cached(tiny):
    images = torch.randn(1, 3, 40, 40)
    models = [VisionTransformer(**tiny).eval() for _ in range(2)]
    params, buffers = torch.func.stack_module_state(models)
    outs = torch.vmap(lambda p, b: torch.func.functional_call(models[0], (p, b), (images, ))[0])(params, buffers)
    with torch.no_grad():
        torch.testing.assert_close(outs[1], models[1](images)[0], atol=1e-5, rtol=1e-5)
    with torch.inference_mode():
        VisionTransformer(**tiny).eval()(images)


def test_cache_is_bounded():
    position = SinCos2dPosEmbed((4, 4), 8, 0)
    for side in range(1, 40):
        position(torch.zeros(1, side, 8), None, (1, side))
    assert len(position._kept) == MAX_KEPT


def test_relative_table_looks_up_offsets():
    table = torch.arange(7.)[:, None]  # offsets -3 .. 3
    looked_up = relative_table(table, 4)[..., 0]
    assert torch.equal(looked_up, 3. + torch.arange(4.)[:, None] - torch.arange(4.)[None])
    assert relative_table(table, 6).shape == (6, 6, 1)


@pytest.mark.parametrize(('kind', 'width', 'words'), [
    ('learned_2d', 7, 'even width'), ('sincos2d', 6, 'multiple of 4')])
def test_widths_that_do_not_fit(kind, width, words):
    with pytest.raises(ConfigError, match=words):
        POS_EMBEDS[kind]((4, 4), width, 1)


def test_unknown_interpolation():
    with pytest.raises(ConfigError, match="interpolate_mode='nearest' is not one of bilinear, bicubic"):
        LearnedPosEmbed((2, 2), 8, 1, 'nearest')
