"""Resize the position table of a checkpoint to any grid, with and without rows of prefix tokens."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from model_states import assert_same_state
from models.loading.test_adapted_weights import models
from rejection import rejects
from scipy.ndimage import zoom

from vit_plugin.models import VisionTransformer, load_weights
from vit_plugin.models.loading.position_table import size_text
from vit_plugin.weights import FORMATS
from vit_plugin.weights.rules import GRID

BICUBIC = dict(type='learned', interpolate_mode='bicubic')
# Formats with a learned table, and arguments of a ViT that they can express.
PLAIN = 'vit_plugin jax timm timm_eva hf hf_dinov2 torchvision mmpretrain eomt hf_eomt'
WITH_A_TABLE: dict[str, dict] = {
    **{name: {} for name in PLAIN.split() if name in FORMATS},
    'clip': dict(encoder=dict(pre_norm=True), patch_embed=dict(bias=False)),
    'hf_siglip': dict(with_cls_token=False, out_type='featmap'),
}


@pytest.mark.parametrize(
    ('old', 'new'), [((32, 32), (48, 64)), ((40, 64), (32, 32)), ((40, 64), (64, 24))]
)
@pytest.mark.parametrize('loader', ['load_weights', 'load_state_dict'])
def test_tables_are_resized_between_any_grids(tiny, old, new, loader):
    theirs, ours = models(tiny, dict(img_size=old), dict(img_size=new))
    grid = tuple(side // 8 for side in old)
    if loader == 'load_weights':
        report = load_weights(ours, theirs.state_dict(), source_grid=grid)
        assert list(report.adapted) == ['pos_embed']
    elif grid[0] == grid[1]:
        ours.load_state_dict(without_grid(theirs))
    else:
        with rejects(r'no square of patches; give source_grid=\(rows, columns\)'):
            ours.load_state_dict(without_grid(theirs))
        pos_embed = dict(type='learned', source_grid=grid)  # as in a config
        ours = VisionTransformer(**{**tiny, 'img_size': new, 'pos_embed': pos_embed}).eval()
        ours.load_state_dict(without_grid(theirs))
    table = theirs.pos_embed[0, 1:].detach().numpy().reshape(*grid, 32)
    target = tuple(side // 8 for side in new)
    expected = zoom(table, (target[0] / grid[0], target[1] / grid[1], 1), order=1)
    np.testing.assert_allclose(
        ours.pos_embed[0, 1:].detach().numpy().reshape(*target, 32), expected, atol=1e-6
    )
    assert torch.equal(ours.pos_embed[:, 0], theirs.pos_embed[:, 0])


@pytest.mark.parametrize(('theirs', 'ours'), [(True, False), (False, True)])
def test_prefix_rows_change_no_output(tiny, theirs, ours):
    theirs, ours = models(
        tiny,
        *(
            dict(encoder=dict(dist_token=1), pos_embed=dict(type='learned', prefix_rows=rows))
            for rows in (theirs, ours)
        ),
    )
    load_weights(ours, theirs.state_dict())
    images = torch.randn(1, 3, 32, 32)
    with torch.no_grad():
        torch.testing.assert_close(ours(images)[0], theirs(images)[0])


def without_grid(model: VisionTransformer) -> dict:
    """The state dict of foreign and older checkpoints, which do not state the table's grid."""
    return {key: value for key, value in model.state_dict().items() if key != GRID}


def loaded(tiny: dict, ours: dict, state: dict, way: str) -> VisionTransformer:
    """A model with the arguments ``ours`` that has loaded a state dict."""
    model = VisionTransformer(**{**tiny, 'out_type': 'raw', **ours}).eval()
    if way == 'load_weights':
        load_weights(model, state)
    else:
        model.load_state_dict(state)
    return model


@pytest.mark.parametrize('way', ['load_weights', 'load_state_dict'])
def test_the_grid_in_our_checkpoints_overrides_source_grid(tiny, way):
    """2 x 8 patches to 8 x 2: ``source_grid`` of the config is about foreign weights only."""
    theirs = VisionTransformer(**{**tiny, **size_of_grid((2, 8))}).eval()
    turned = dict(size_of_grid((8, 2)), pos_embed=dict(type='learned', source_grid=(4, 4)))
    ours = loaded(tiny, turned, theirs.state_dict(), way)
    expected = theirs.position.resample(theirs.pos_embed[:, 1:], (2, 8), (8, 2))
    assert torch.equal(ours.pos_embed[:, 1:], expected)
    assert ours.state_dict()[GRID].tolist() == [8, 2]
    again = loaded(tiny, turned, ours.state_dict(), way)  # as resuming does
    assert torch.equal(again.pos_embed, ours.pos_embed)


@pytest.mark.parametrize('way', ['load_weights', 'load_state_dict'])
@pytest.mark.parametrize('name', WITH_A_TABLE)
def test_square_tables_are_resized_to_other_grids_of_equal_size(tiny, name, way):
    """Without a grid a square is assumed, also under our names, which MAE and DINO share."""
    side, cfg = 4, {**tiny, **WITH_A_TABLE[name], 'pos_embed': BICUBIC}
    theirs = VisionTransformer(**cfg | size_of_grid((side, side)))
    torch.nn.init.normal_(theirs.pos_embed)
    state, _ = FORMATS[name].export(without_grid(theirs), heads=2)
    rows = theirs.num_prefix_tokens
    table = theirs.pos_embed[:, rows:].unflatten(1, (side, side)).permute(0, 3, 1, 2)
    for grid in ((side // 2, 2 * side), (side * side, 1)):
        ours = VisionTransformer(**cfg | size_of_grid(grid))
        if way == 'load_weights':
            change = f'positions of {size_text((side, side))} patches to {size_text(grid)}'
            assert load_weights(ours, state).adapted == {'pos_embed': change}
        else:
            ours.load_state_dict(state)
        expected = F.interpolate(table, grid, mode='bicubic', antialias=True)
        assert torch.equal(ours.pos_embed[:, rows:], expected.flatten(2).transpose(1, 2))
        assert torch.equal(ours.pos_embed[:, :rows], theirs.pos_embed[:, :rows])
        again = VisionTransformer(**cfg | size_of_grid(grid))
        again.load_state_dict(ours.state_dict())
        assert torch.equal(again.pos_embed, ours.pos_embed)


@pytest.mark.parametrize('extra', [None, 'head', 'prefix'])
def test_tables_are_resized_with_a_head_or_a_prefix(tiny, extra):
    """DINO's files have the prefix."""
    theirs = VisionTransformer(**tiny)
    prefix = 'backbone.' if extra == 'prefix' else ''
    state = {f'{prefix}{key}': value for key, value in without_grid(theirs).items()}
    if extra == 'head':
        state['head.weight'] = torch.ones(3, 32)
    ours = VisionTransformer(**tiny | size_of_grid((2, 8)))
    report = load_weights(ours, state)
    assert report.adapted == {'pos_embed': 'positions of 4 x 4 patches to 2 x 8'}


def test_unstated_grids_that_are_not_square_are_noted(tiny):
    theirs, ours = models(tiny, size_of_grid((2, 5)), size_of_grid((2, 5)))
    (note,) = load_weights(ours, without_grid(theirs)).notes
    assert '10 positions do not form a square, and are taken for the 2 x 5 patches' in note
    assert torch.equal(ours.pos_embed, theirs.pos_embed)
    turned = VisionTransformer(**tiny | size_of_grid((5, 2)))
    report = load_weights(turned, without_grid(theirs), source_grid=(2, 5))
    assert report.notes == []
    assert report.adapted == {'pos_embed': 'positions of 2 x 5 patches to 5 x 2'}


def test_source_grid_of_a_config_applies_to_foreign_checkpoints(tiny, tmp_path):
    theirs = VisionTransformer(**{**tiny, **size_of_grid((2, 8))})
    torch.save(without_grid(theirs), tmp_path / 'timm.pth')
    cfg = dict(size_of_grid((8, 2)), pos_embed=dict(type='learned', source_grid=(2, 8)))
    jax = loaded(
        tiny, cfg, FORMATS['jax'].export(theirs.state_dict(), heads=2)[0], 'load_state_dict'
    )
    timm = VisionTransformer(
        **{**tiny, **cfg}, init_cfg=dict(type='Pretrained', checkpoint=str(tmp_path / 'timm.pth'))
    )
    timm.init_weights()
    expected = theirs.position.resample(theirs.pos_embed[:, 1:], (2, 8), (8, 2))
    for model in (jax, timm):
        assert torch.equal(model.pos_embed[:, 1:], expected)


@pytest.mark.parametrize('grid', [[4, 5], [-4, -4], [2**40, 2**40], 4, [4.0, 4.0], [1, 2, 8]])
@pytest.mark.parametrize('way', ['load_weights', 'load_state_dict'])
def test_damaged_grids_raise(tiny, grid, way):
    state = {**VisionTransformer(**tiny).state_dict(), GRID: torch.tensor(grid)}
    with rejects('(is|file is) damaged'):
        loaded(tiny, {}, state, way)


@pytest.mark.parametrize('name', ['timm', 'jax', 'hf', 'vit_plugin'])
def test_only_our_own_format_keeps_the_grid(tiny, name):
    exported, omitted = FORMATS[name].export(VisionTransformer(**tiny).state_dict(), heads=2)
    assert not omitted
    assert (GRID in exported) == (name == 'vit_plugin')


def size_of_grid(grid: tuple[int, int]) -> dict:
    """The argument ``img_size`` for a grid of patches of 8 pixels."""
    return dict(img_size=tuple(8 * side for side in grid))


@pytest.mark.parametrize('grid', [(2, 5), (5, 10), (2, 8)])
@pytest.mark.parametrize('rows', [True, False])
def test_our_weights_of_the_same_model_are_not_adapted(tiny, grid, rows):
    change = dict(size_of_grid(grid), pos_embed=dict(type='learned', prefix_rows=rows))
    theirs, ours = models(tiny, change, change)
    torch.nn.init.normal_(theirs.cls_token)
    assert load_weights(ours, theirs.state_dict()).adapted == {}
    assert_same_state(theirs, ours)


def test_the_row_of_a_missing_class_token_is_dropped(tiny):
    theirs, ours = models(tiny, None, dict(with_cls_token=False))
    state = {key: value for key, value in theirs.state_dict().items() if key != 'cls_token'}
    load_weights(ours, state)
    assert torch.equal(ours.pos_embed, theirs.pos_embed[:, 1:])
