"""Resize the position table of a checkpoint to any grid, with and without rows of prefix tokens.

A table has one row for each patch, and perhaps rows for the tokens before them. Our own checkpoints
also save the grid of the patches, under the key ``GRID``. For others, ``source_grid`` states it, or
it is assumed: a square if one fits, else the grid of the model.
"""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from model_states import assert_same_state
from models.loading.test_adapted_weights import source_and_target
from rejection import rejects
from scipy.ndimage import zoom

from vit_plugin.models import VisionTransformer, load_weights
from vit_plugin.models.loading.position_table import size_text
from vit_plugin.weights import FORMATS
from vit_plugin.weights.rules import GRID

BICUBIC = dict(type='learned', interpolate_mode='bicubic')
# Formats with a learned table, and changed arguments for a ViT that they can express.
PLAIN = 'vit_plugin jax timm timm_eva hf hf_dinov2 torchvision mmpretrain eomt hf_eomt'
WITH_A_TABLE: dict[str, dict] = {
    **{name: {} for name in PLAIN.split() if name in FORMATS},
    'clip': dict(encoder=dict(pre_norm=True), patch_embed=dict(bias=False)),
    'hf_siglip': dict(with_cls_token=False, out_type='featmap'),
}


def without_grid(model: VisionTransformer) -> dict:
    """The state dict of foreign and older checkpoints, which do not state the table's grid."""
    return {key: value for key, value in model.state_dict().items() if key != GRID}


def loaded(tiny: dict, changes: dict, state: dict, way: str) -> VisionTransformer:
    """A model with changed arguments that has loaded a state dict."""
    model = VisionTransformer(**{**tiny, 'out_type': 'raw', **changes}).eval()
    if way == 'load_weights':
        load_weights(model, state)
    else:
        model.load_state_dict(state)
    return model


def size_of_grid(grid: tuple[int, int]) -> dict:
    """The argument ``img_size`` for a grid of patches of 8 pixels."""
    return dict(img_size=tuple(8 * side for side in grid))


@pytest.mark.parametrize(
    ('old', 'new'), [((32, 32), (48, 64)), ((40, 64), (32, 32)), ((40, 64), (64, 24))]
)
@pytest.mark.parametrize('way', ['load_weights', 'load_state_dict'])
def test_tables_are_resized_between_any_grids(tiny, old, new, way):
    """They equal those of scipy's zoom, the authors' method. ``old``, ``new``: sizes of images."""
    source, target = source_and_target(tiny, dict(img_size=old), dict(img_size=new))
    old_grid, new_grid = (tuple(side // 8 for side in size) for size in (old, new))
    if way == 'load_weights':
        report = load_weights(target, source.state_dict(), source_grid=old_grid)
        assert list(report.adapted) == ['pos_embed']
    elif old_grid[0] == old_grid[1]:
        target.load_state_dict(without_grid(source))
    else:
        with rejects(r'no square of patches; give source_grid=\(rows, columns\)'):
            target.load_state_dict(without_grid(source))
        pos_embed = dict(type='learned', source_grid=old_grid)  # as in a config
        target = VisionTransformer(**{**tiny, 'img_size': new, 'pos_embed': pos_embed}).eval()
        target.load_state_dict(without_grid(source))
    table = source.pos_embed[0, 1:].detach().numpy().reshape(*old_grid, 32)
    factors = (new_grid[0] / old_grid[0], new_grid[1] / old_grid[1], 1)
    expected = zoom(table, factors, order=1)
    np.testing.assert_allclose(
        target.pos_embed[0, 1:].detach().numpy().reshape(*new_grid, 32), expected, atol=1e-6
    )
    assert torch.equal(target.pos_embed[:, 0], source.pos_embed[:, 0])


@pytest.mark.parametrize('source_has_rows', [True, False])
def test_prefix_rows_change_no_output(tiny, source_has_rows):
    """If only one of the two tables has rows for prefix tokens."""
    source, target = source_and_target(
        tiny,
        *(
            dict(encoder=dict(dist_token=1), pos_embed=dict(type='learned', prefix_rows=has_rows))
            for has_rows in (source_has_rows, not source_has_rows)
        ),
    )
    load_weights(target, source.state_dict())
    images = torch.randn(1, 3, 32, 32)
    with torch.no_grad():
        torch.testing.assert_close(target(images)[0], source(images)[0])


@pytest.mark.parametrize('way', ['load_weights', 'load_state_dict'])
def test_the_grid_in_our_checkpoints_overrides_source_grid(tiny, way):
    """From 2 x 8 patches to 8 x 2. ``source_grid`` is only for checkpoints without a grid."""
    source = VisionTransformer(**{**tiny, **size_of_grid((2, 8))}).eval()
    transposed = dict(size_of_grid((8, 2)), pos_embed=dict(type='learned', source_grid=(4, 4)))
    target = loaded(tiny, transposed, source.state_dict(), way)
    expected = source.position.resample(source.pos_embed[:, 1:], (2, 8), (8, 2))
    assert torch.equal(target.pos_embed[:, 1:], expected)
    assert target.state_dict()[GRID].tolist() == [8, 2]
    again = loaded(tiny, transposed, target.state_dict(), way)  # as resuming does
    assert torch.equal(again.pos_embed, target.pos_embed)


@pytest.mark.parametrize('way', ['load_weights', 'load_state_dict'])
@pytest.mark.parametrize('name', WITH_A_TABLE)
def test_square_tables_are_resized_to_other_grids_of_equal_size(tiny, name, way):
    """16 rows are taken as 4 x 4, also if the model has 2 x 8 or 16 x 1 patches.

    This holds for our names too, since the checkpoints of MAE and DINO have the same names.
    """
    side, cfg = 4, {**tiny, **WITH_A_TABLE[name], 'pos_embed': BICUBIC}
    source = VisionTransformer(**cfg | size_of_grid((side, side)))
    torch.nn.init.normal_(source.pos_embed)
    state, _ = FORMATS[name].export(without_grid(source), heads=2)
    num_prefix = source.num_prefix_tokens
    table = source.pos_embed[:, num_prefix:].unflatten(1, (side, side)).permute(0, 3, 1, 2)
    for grid in ((side // 2, 2 * side), (side * side, 1)):
        target = VisionTransformer(**cfg | size_of_grid(grid))
        if way == 'load_weights':
            change = f'positions of {size_text((side, side))} patches to {size_text(grid)}'
            assert load_weights(target, state).adapted == {'pos_embed': change}
        else:
            target.load_state_dict(state)
        expected = F.interpolate(table, grid, mode='bicubic', antialias=True)
        assert torch.equal(target.pos_embed[:, num_prefix:], expected.flatten(2).transpose(1, 2))
        assert torch.equal(target.pos_embed[:, :num_prefix], source.pos_embed[:, :num_prefix])
        again = VisionTransformer(**cfg | size_of_grid(grid))
        again.load_state_dict(target.state_dict())
        assert torch.equal(again.pos_embed, target.pos_embed)


@pytest.mark.parametrize('extra', [None, 'head', 'prefix'])
def test_tables_are_resized_with_a_head_or_a_prefix(tiny, extra):
    """DINO's files have the prefix."""
    source = VisionTransformer(**tiny)
    prefix = 'backbone.' if extra == 'prefix' else ''
    state = {f'{prefix}{key}': value for key, value in without_grid(source).items()}
    if extra == 'head':
        state['head.weight'] = torch.ones(3, 32)
    target = VisionTransformer(**tiny | size_of_grid((2, 8)))
    report = load_weights(target, state)
    assert report.adapted == {'pos_embed': 'positions of 4 x 4 patches to 2 x 8'}


def test_unstated_grids_that_are_not_square_are_noted(tiny):
    source, target = source_and_target(tiny, size_of_grid((2, 5)), size_of_grid((2, 5)))
    (note,) = load_weights(target, without_grid(source)).notes
    assert '10 positions do not form a square, and are taken for the 2 x 5 patches' in note
    assert torch.equal(target.pos_embed, source.pos_embed)
    transposed = VisionTransformer(**tiny | size_of_grid((5, 2)))
    report = load_weights(transposed, without_grid(source), source_grid=(2, 5))
    assert report.notes == []
    assert report.adapted == {'pos_embed': 'positions of 2 x 5 patches to 5 x 2'}


def test_source_grid_of_a_config_applies_to_foreign_checkpoints(tiny, tmp_path):
    source = VisionTransformer(**{**tiny, **size_of_grid((2, 8))})
    torch.save(without_grid(source), tmp_path / 'timm.pth')
    cfg = dict(size_of_grid((8, 2)), pos_embed=dict(type='learned', source_grid=(2, 8)))
    from_jax = loaded(
        tiny, cfg, FORMATS['jax'].export(source.state_dict(), heads=2)[0], 'load_state_dict'
    )
    from_timm = VisionTransformer(
        **{**tiny, **cfg}, init_cfg=dict(type='Pretrained', checkpoint=str(tmp_path / 'timm.pth'))
    )
    from_timm.init_weights()
    expected = source.position.resample(source.pos_embed[:, 1:], (2, 8), (8, 2))
    for model in (from_jax, from_timm):
        assert torch.equal(model.pos_embed[:, 1:], expected)


@pytest.mark.parametrize('grid', [[4, 5], [-4, -4], [2**40, 2**40], 4, [4.0, 4.0], [1, 2, 8]])
@pytest.mark.parametrize('way', ['load_weights', 'load_state_dict'])
def test_damaged_grids_raise(tiny, grid, way):
    state = {**VisionTransformer(**tiny).state_dict(), GRID: torch.tensor(grid)}
    with rejects('is damaged'):
        loaded(tiny, {}, state, way)


@pytest.mark.parametrize('name', ['timm', 'jax', 'hf', 'vit_plugin'])
def test_only_our_own_format_keeps_the_grid(tiny, name):
    exported, omitted = FORMATS[name].export(VisionTransformer(**tiny).state_dict(), heads=2)
    assert not omitted
    assert (GRID in exported) == (name == 'vit_plugin')


@pytest.mark.parametrize('grid', [(2, 5), (5, 10), (2, 8)])
@pytest.mark.parametrize('prefix_rows', [True, False])
def test_our_weights_of_the_same_model_are_not_adapted(tiny, grid, prefix_rows):
    change = dict(size_of_grid(grid), pos_embed=dict(type='learned', prefix_rows=prefix_rows))
    source, target = source_and_target(tiny, change, change)
    torch.nn.init.normal_(source.cls_token)
    assert load_weights(target, source.state_dict()).adapted == {}
    assert_same_state(source, target)


def test_the_row_of_a_missing_class_token_is_dropped(tiny):
    source, target = source_and_target(tiny, None, dict(with_cls_token=False))
    state = {key: value for key, value in source.state_dict().items() if key != 'cls_token'}
    load_weights(target, state)
    assert torch.equal(target.pos_embed, source.pos_embed[:, 1:])


def test_the_row_of_a_skipped_distillation_token_is_dropped(tiny):
    source, target = source_and_target(tiny, dict(encoder=dict(dist_token=1)), None)
    report = load_weights(target, source.state_dict(), skip=['dist_token'])
    assert 'the row of the distillation token is left out' in report.adapted['pos_embed']
    expected = torch.cat((source.pos_embed[:, :1], source.pos_embed[:, 2:]), dim=1)
    assert torch.equal(target.pos_embed, expected)
