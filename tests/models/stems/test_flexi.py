"""FlexiViT: one set of weights, patches of any size."""

import random

import pytest
import timm
import torch
from rejection import rejects
from timm.layers import resample_abs_pos_embed, resample_patch_embed

from vit_plugin.models import FlexiPatchEmbed, VisionTransformer, load_weights
from vit_plugin.models.stems.flexi import PAPER_SIZES

FLEXI = dict(type='FlexiPatchEmbed', patch_size=8, kernel_size=8)


def test_grid_and_table_follow_the_patch_size(tiny):
    model = VisionTransformer(**{**tiny, 'patch_embed': FLEXI, 'out_type': 'raw'}).eval()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    images = torch.randn(1, 3, 32, 48)
    for size, grid in ((8, (4, 6)), (4, (8, 12)), (16, (2, 3)), (20, (2, 3))):
        model.patch_embed.set_patch_size(size)
        assert model.patch_embed.grid((32, 48)) == grid
        assert model.strides == (size,)
        assert model(images)[0].shape[1] == model.num_prefix_tokens + grid[0] * grid[1]
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_weights_do_not_depend_on_the_patch_size(tiny):
    common = {**tiny, 'out_type': 'raw', 'img_size': 48}
    small, large = (
        VisionTransformer(**common, patch_embed=dict(FLEXI, patch_size=size)).eval()
        for size in (6, 12)
    )
    large.load_state_dict(small.state_dict())
    small.patch_embed.set_patch_size(12)
    images = torch.randn(1, 3, 48, 48)
    assert torch.equal(small(images)[0], large(images)[0])


def test_training_draws_all_sizes_and_evaluation_keeps_the_patch_size(tiny):
    model = VisionTransformer(
        **{**tiny, 'patch_embed': dict(FLEXI, sizes=(4, 8, 16)), 'out_type': 'avg_featmap'}
    )
    grids = []
    model.patch_embed.register_forward_hook(lambda module, args, output: grids.append(output[1]))
    random.seed(0)
    images = torch.randn(1, 3, 32, 32)
    for _ in range(60):
        model(images)
    counts = {grid: grids.count(grid) for grid in grids}
    assert counts.keys() == {(8, 8), (4, 4), (2, 2)}
    assert min(counts.values()) > 10  # of 60 draws, 20 each on average
    model.eval()
    grids.clear()
    model(images)
    model(images)
    assert grids == [(4, 4)] * 2
    model.train()(images)[0].sum().backward()
    assert model.patch_embed.proj.weight.grad is not None


def test_the_sizes_of_the_paper_divide_its_images():
    assert FlexiPatchEmbed(sizes='paper').sizes == PAPER_SIZES
    assert all(240 % size == 0 for size in PAPER_SIZES)


@pytest.mark.nightly
def test_outputs_equal_timms_flexivit_at_other_patch_sizes():
    """Against timm, which resamples its weights once for a fixed patch size."""
    name, sizes = 'flexivit_small', dict(depth=2)
    theirs = timm.create_model(name, num_classes=0, **sizes).eval().double()
    stem = VisionTransformer(arch=f'timm://{name}', out_indices=1).patch_embed
    assert isinstance(stem, FlexiPatchEmbed)
    ours = VisionTransformer(
        arch=dict(embed_dims=384, num_layers=2, num_heads=6, feedforward_channels=1536),
        img_size=240,
        numerics='timm',
        patch_embed=dict(FLEXI, patch_size=16, kernel_size=16),
        pos_embed=dict(interpolate_mode='bicubic', prefix_rows=False),
    ).eval()
    load_weights(ours, theirs.state_dict())
    ours.double()
    images, state = torch.randn(1, 3, 240, 240, dtype=torch.float64), theirs.state_dict()
    torch.testing.assert_close(ours(images)[0], theirs(images))
    for size in (12, 30):
        changed = timm.create_model(name, num_classes=0, patch_size=size, **sizes).eval().double()
        changed.load_state_dict(
            dict(
                state,
                **{
                    'patch_embed.proj.weight': resample_patch_embed(
                        state['patch_embed.proj.weight'].float(),
                        [size, size],
                        interpolation='bilinear',
                    ),
                    'pos_embed': resample_abs_pos_embed(
                        state['pos_embed'], [240 // size] * 2, num_prefix_tokens=0
                    ),
                },
            )
        )
        ours.patch_embed.set_patch_size(size)
        # timm resizes in float32.
        torch.testing.assert_close(ours(images)[0], changed(images), atol=1e-4, rtol=1e-4)


@pytest.mark.nightly
def test_flexi_stem_compiles_and_exports_to_one_graph(tiny):
    torch.compiler.reset()
    model = VisionTransformer(**{**tiny, 'patch_embed': dict(FLEXI, patch_size=16)}).eval()
    images = torch.randn(2, 3, 32, 32)
    compiled = torch.compile(model, backend='aot_eager', fullgraph=True)
    torch.testing.assert_close(compiled(images), model(images))
    program = torch.export.export(model, (images,))
    torch.testing.assert_close(program.module()(images), model(images))


def test_flexi_stem_is_built_on_the_meta_device(tiny):
    with torch.device('meta'):
        model = VisionTransformer(**{**tiny, 'patch_embed': dict(FLEXI, patch_size=16)})
    source = VisionTransformer(**{**tiny, 'patch_embed': dict(FLEXI, patch_size=16)}).eval()
    model.load_state_dict(source.state_dict(), assign=True)
    images = torch.randn(1, 3, 32, 32)
    assert torch.equal(model.eval()(images)[0], source(images)[0])


@pytest.mark.parametrize(
    ('change', 'words'),
    [
        (
            dict(patch_embed=dict(FLEXI, sizes=(8, 40))),
            'smaller than the largest of the patch sizes 8, 40',
        ),
        (
            dict(patch_embed=dict(FLEXI, kernel_size=64)),
            'img_size=32 x 32 is smaller than the kernel of 64 x 64',
        ),
        (
            dict(patch_embed=dict(FLEXI, sizes=(4, 8)), out_type='featmap'),
            "out_type='featmap': the patches must have a fixed size",
        ),
        (dict(patch_embed=dict(FLEXI, sizes=())), 'sizes'),
        (dict(patch_embed=dict(FLEXI, sizes='all')), "sizes='all' must be"),
    ],
)
def test_invalid_patch_sizes_raise(tiny, change, words):
    with rejects(words):
        VisionTransformer(**{**tiny, **change})


def test_images_smaller_than_a_patch_raise(tiny):
    model = VisionTransformer(**{**tiny, 'patch_embed': FLEXI}).eval()
    model.patch_embed.set_patch_size(40)
    with rejects('smaller than one patch of 40 x 40'):
        model(torch.randn(1, 3, 32, 32))
