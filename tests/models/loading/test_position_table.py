"""The position table of a checkpoint on any grid, and the rows of the tokens before the patches."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from model_states import assert_same_state
from models.loading.test_adapted_weights import models
from rejection import rejects
from scipy.ndimage import zoom

from vit_plugin.models import VisionTransformer, load_weights
from vit_plugin.models.loading.position_table import by
from vit_plugin.weights import FORMATS
from vit_plugin.weights.rules import GRID

BICUBIC = dict(type='learned', interpolate_mode='bicubic')
# The formats that have a learned table and all blocks of a plain ViT, and what that ViT has.
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
def test_positions_from_any_grid_to_any(tiny, old, new, loader):
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
        told = dict(type='learned', source_grid=grid)  # as a config can
        ours = VisionTransformer(**{**tiny, 'img_size': new, 'pos_embed': told}).eval()
        ours.load_state_dict(without_grid(theirs))
    table = theirs.pos_embed[0, 1:].detach().numpy().reshape(*grid, 32)
    target = tuple(side // 8 for side in new)
    expected = zoom(table, (target[0] / grid[0], target[1] / grid[1], 1), order=1)
    np.testing.assert_allclose(
        ours.pos_embed[0, 1:].detach().numpy().reshape(*target, 32), expected, atol=1e-6
    )
    assert torch.equal(ours.pos_embed[:, 0], theirs.pos_embed[:, 0])


@pytest.mark.parametrize(('theirs', 'ours'), [(True, False), (False, True)])
def test_rows_of_the_extra_tokens_change_no_output(tiny, theirs, ours):
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
    """As its checkpoints were before they told the grid of the table."""
    return {key: value for key, value in model.state_dict().items() if key != GRID}


def loaded(tiny: dict, ours: dict, state: dict, way: str) -> VisionTransformer:
    model = VisionTransformer(**{**tiny, 'out_type': 'raw', **ours}).eval()
    load_weights(model, state) if way == 'load_weights' else model.load_state_dict(state)
    return model


@pytest.mark.parametrize('way', ['load_weights', 'load_state_dict'])
def test_a_checkpoint_of_our_own_tells_its_grid(tiny, way):
    """Of 2 x 8 patches to as many in 8 x 2, whatever a config says of the file that the run started
    from.
    """
    theirs = VisionTransformer(**{**tiny, **grids((2, 8))}).eval()
    turned = dict(grids((8, 2)), pos_embed=dict(type='learned', source_grid=(4, 4)))
    ours = loaded(tiny, turned, theirs.state_dict(), way)
    expected = theirs.position.resample(theirs.pos_embed[:, 1:], (2, 8), (8, 2))
    assert torch.equal(ours.pos_embed[:, 1:], expected)
    assert ours.state_dict()[GRID].tolist() == [8, 2]
    again = loaded(tiny, turned, ours.state_dict(), way)  # as resuming does
    assert torch.equal(again.pos_embed, ours.pos_embed)


@pytest.mark.parametrize('way', ['load_weights', 'load_state_dict'])
@pytest.mark.parametrize('name', WITH_A_TABLE)
def test_a_square_of_as_many_rows_is_another_grid(tiny, name, way):
    """MAE's and DINO's names without a head are those of ours, and their tables are square."""
    side, cfg = 4, {**tiny, **WITH_A_TABLE[name], 'pos_embed': BICUBIC}
    theirs = VisionTransformer(**cfg | grids((side, side)))
    torch.nn.init.normal_(theirs.pos_embed)
    state, _ = FORMATS[name].export(without_grid(theirs), 2)
    rows = theirs.num_prefix_tokens
    table = theirs.pos_embed[:, rows:].unflatten(1, (side, side)).permute(0, 3, 1, 2)
    for grid in ((side // 2, 2 * side), (side * side, 1)):
        ours = VisionTransformer(**cfg | grids(grid))
        if way == 'load_weights':
            change = f'positions of {by((side, side))} patches to {by(grid)}'
            assert load_weights(ours, state).adapted == {'pos_embed': change}
        else:
            ours.load_state_dict(state)
        expected = F.interpolate(table, grid, mode='bicubic', antialias=True)
        assert torch.equal(ours.pos_embed[:, rows:], expected.flatten(2).transpose(1, 2))
        assert torch.equal(ours.pos_embed[:, :rows], theirs.pos_embed[:, :rows])
        again = VisionTransformer(**cfg | grids(grid))
        again.load_state_dict(ours.state_dict())
        assert torch.equal(again.pos_embed, ours.pos_embed)


@pytest.mark.parametrize('prefix', ['', 'head.', 'backbone.'])
def test_a_head_changes_nothing(tiny, prefix):
    """Nor does the prefix that DINO's files have."""
    theirs = VisionTransformer(**tiny)
    start = '' if prefix == 'head.' else prefix
    state = {f'{start}{key}': value for key, value in without_grid(theirs).items()}
    state |= {'head.weight': torch.ones(3, 32)} if prefix == 'head.' else {}
    ours = VisionTransformer(**tiny | grids((2, 8)))
    report = load_weights(ours, state)
    assert report.adapted == {'pos_embed': 'positions of 4 x 4 patches to 2 x 8'}


def test_a_grid_that_nothing_states_is_said(tiny):
    theirs, ours = models(tiny, grids((2, 5)), grids((2, 5)))
    (said,) = load_weights(ours, without_grid(theirs)).notes
    assert '10 positions do not form a square, and are taken for the 2 x 5 patches' in said
    assert torch.equal(ours.pos_embed, theirs.pos_embed)
    turned = VisionTransformer(**tiny | grids((5, 2)))
    report = load_weights(turned, without_grid(theirs), source_grid=(2, 5))
    assert report.notes == []
    assert report.adapted == {'pos_embed': 'positions of 2 x 5 patches to 5 x 2'}


def test_the_grid_of_a_config_is_that_of_foreign_checkpoints(tiny, tmp_path):
    theirs = VisionTransformer(**{**tiny, **grids((2, 8))})
    torch.save(without_grid(theirs), tmp_path / 'timm.pth')
    cfg = dict(grids((8, 2)), pos_embed=dict(type='learned', source_grid=(2, 8)))
    jax = loaded(tiny, cfg, FORMATS['jax'].export(theirs.state_dict(), 2)[0], 'load_state_dict')
    named_alike = VisionTransformer(
        **{**tiny, **cfg}, init_cfg=dict(type='Pretrained', checkpoint=str(tmp_path / 'timm.pth'))
    )
    named_alike.init_weights()
    expected = theirs.position.resample(theirs.pos_embed[:, 1:], (2, 8), (8, 2))
    for model in (jax, named_alike):
        assert torch.equal(model.pos_embed[:, 1:], expected)


@pytest.mark.parametrize('grid', [[4, 5], [-4, -4], [2**40, 2**40], 4, [4.0, 4.0], [1, 2, 8]])
@pytest.mark.parametrize('way', ['load_weights', 'load_state_dict'])
def test_a_damaged_grid_is_one_sentence(tiny, grid, way):
    state = {**VisionTransformer(**tiny).state_dict(), GRID: torch.tensor(grid)}
    with rejects('(is|file is) damaged'):
        loaded(tiny, {}, state, way)


@pytest.mark.parametrize('name', ['timm', 'jax', 'hf', 'vit_plugin'])
def test_only_our_own_format_keeps_the_grid(tiny, name):
    exported, left = FORMATS[name].export(VisionTransformer(**tiny).state_dict(), 2)
    assert not left
    assert (GRID in exported) == (name == 'vit_plugin')


def grids(grid: tuple[int, int]) -> dict:
    return dict(img_size=tuple(8 * side for side in grid))


@pytest.mark.parametrize('grid', [(2, 5), (5, 10), (2, 8)])
@pytest.mark.parametrize('rows', [True, False])
def test_own_weights_of_the_same_model_are_left_as_they_are(tiny, grid, rows):
    change = dict(grids(grid), pos_embed=dict(type='learned', prefix_rows=rows))
    theirs, ours = models(tiny, change, change)
    torch.nn.init.normal_(theirs.cls_token)
    assert load_weights(ours, theirs.state_dict()).adapted == {}
    assert_same_state(theirs, ours)


def test_a_row_without_its_token(tiny):
    theirs, ours = models(tiny, None, dict(with_cls_token=False))
    state = {key: value for key, value in theirs.state_dict().items() if key != 'cls_token'}
    load_weights(ours, state)
    assert torch.equal(ours.pos_embed, theirs.pos_embed[:, 1:])
