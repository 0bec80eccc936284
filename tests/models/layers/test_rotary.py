"""Rotary positions, against rotations that are written out."""

import math

import pytest
import torch
from model_states import assert_all_learn
from models.backbones.test_compile import Graphs
from rejection import rejects

from vit_plugin.models import VisionTransformer
from vit_plugin.models.layers.rotary import AxialRotary, RotaryOptions, build_rotary
from vit_plugin.models.layers.rotary_attention import rotate

SIZES = dict(head_dims=16, num_heads=2, num_layers=2, num_prefix_tokens=1)
FORMS = {
    'index': dict(form='index', native_grid=(4, 4), offset=1.0),
    'xy': dict(form='index', order='xy'),
    'centred': dict(form='centred', planes='halves'),
    'mixed': dict(form='mixed'),
}


@pytest.mark.parametrize('form', ['index', 'mixed'])
def test_attention_products_depend_on_relative_positions(form):
    rope = build_rotary(dict(form=form), **SIZES)
    x = torch.randn(1, 2, 1, 16).expand(-1, -1, 21, -1)  # the same vector everywhere
    rotated = rotate(x, rope((4, 5), x)[1], interleaved=True)
    assert torch.equal(rotated[:, :, 0], x[:, :, 0])  # the token before the patches
    patches = rotated[:, :, 1:].unflatten(2, (4, 5))
    # One image: products of the patches at (y, x) and (Y, X), for each head.
    products = torch.einsum('bhyxd,bhYXd->hyxYX', patches, patches)
    torch.testing.assert_close(products[:, 0, 1, 2, 2], products[:, 1, 3, 3, 4])
    assert (products[:, 0, 1, 2, 2] - products[:, 0, 1, 2, 3]).abs().min() > 1e-4


def test_coordinates_of_each_form():
    centered = RotaryOptions('centred').coordinates((2, 4), torch.device('cpu'))
    assert centered[:, 0].tolist() == [-0.5] * 4 + [0.5] * 4
    assert centered[:4, 1].tolist() == [-0.75, -0.25, 0.25, 0.75]
    scaled = RotaryOptions('index', order='xy', native_grid=(4, 8), offset=1.0).coordinates(
        (2, 4), torch.device('cpu')
    )
    # The patch at row 1, column 1. x comes first: (1 + offset) / columns * native columns.
    assert scaled[5].tolist() == [(1 + 1) / 4 * 8, (1 + 1) / 2 * 4]
    assert RotaryOptions('index').coordinates((2, 2), torch.device('cpu')).tolist() == [
        [0, 0],
        [0, 1],
        [1, 0],
        [1, 1],
    ]


def test_coordinates_are_augmented_only_in_training():
    rope = build_rotary(dict(form='centred', shift=0.5, jitter=1.5, rescale=2.0), **SIZES)
    like = torch.empty(0)
    assert not torch.equal(rope((3, 3), like)[0], rope((3, 3), like)[0])
    first, second = rope((3, 3), like)
    assert first is second  # the same for all blocks
    rope.eval()
    assert torch.equal(rope((3, 3), like)[0], rope((3, 3), like)[0])
    coordinates = RotaryOptions('index', shift=0.25, jitter=2.0).augmented(torch.ones(1000, 2))
    assert (coordinates == coordinates[0]).all()
    shifted_origins = torch.stack(
        [
            RotaryOptions('index', shift=0.25, rescale=2.0).augmented(torch.zeros(1, 2))[0]
            for _ in range(300)
        ]
    )
    assert 0.4 < shifted_origins.abs().max() <= 0.5  # shift=0.25, rescaled by up to 2


@pytest.mark.parametrize('form', FORMS)
def test_a_window_that_holds_the_grid_is_global_attention(tiny, form):
    common = dict(
        tiny, pos_embed=dict(type='none', rotary=FORMS[form]), with_cls_token=False, out_type='raw'
    )
    whole = VisionTransformer(**common).eval()
    windows = VisionTransformer(**common, encoder=dict(window=dict(size=4))).eval()
    assert windows.blocks[0].attn.window.size == 4
    windows.load_state_dict(whole.state_dict())
    images = torch.randn(2, 3, 32, 32)
    torch.testing.assert_close(windows(images), whole(images))


def test_windows_attend_only_to_themselves(tiny):
    """The outputs of a window equal those of an image that is cropped to the window."""
    cfg = dict(
        tiny,
        pos_embed=dict(type='none', rotary=dict(form='mixed')),
        with_cls_token=False,
        out_type='featmap',
    )
    windows = VisionTransformer(**cfg, encoder=dict(window=dict(size=2))).eval()
    images = torch.randn(2, 3, 32, 48)
    # Positions by index are relative: shifting all of them does not change attention.
    torch.testing.assert_close(windows(images)[0][..., 2:, 4:], windows(images[..., 16:, 32:])[0])


@pytest.mark.nightly
@pytest.mark.parametrize(
    ('form', 'mode'),
    [
        ('centred', 'eval'),
        ('index', 'eval'),
        ('xy', 'eval'),
        ('mixed', 'eval'),
        ('centred', 'train'),
        ('mixed', 'train'),
    ],
)
def test_rotary_models_compile_to_one_graph_and_learn(tiny, form, mode):
    torch.compiler.reset()
    graphs = Graphs()
    model = VisionTransformer(**tiny, pos_embed=dict(rotary=FORMS[form]), with_cp=True).train(
        mode == 'train'
    )
    compiled = torch.compile(model, backend=graphs, fullgraph=True)
    images = torch.randn(2, 3, 32, 40)
    torch.testing.assert_close(compiled(images), model(images))
    assert graphs.count == 1
    if mode == 'train':
        compiled(images)[0].sum().backward()
        assert_all_learn(model)


@pytest.mark.nightly
def test_export_at_any_size(tiny):
    model = VisionTransformer(
        **tiny, pos_embed=dict(type='none', rotary=dict(form='centred')), out_type='raw'
    ).eval()
    rows, columns = (torch.export.Dim(name, min=2, max=64) for name in ('rows', 'columns'))
    program = torch.export.export(
        model, (torch.randn(1, 3, 32, 40),), dynamic_shapes=[{2: 8 * rows, 3: 8 * columns}]
    )
    images = torch.randn(1, 3, 48, 24)
    torch.testing.assert_close(program.module()(images), model(images))


def test_frequencies_are_frozen_undecayed_and_in_the_first_layer(tiny):
    model = VisionTransformer(
        **tiny, pos_embed=dict(rotary=dict(form='mixed', shift=1.0)), frozen_stages=0
    ).train()
    assert not model.rope.freqs.requires_grad
    assert not model.rope.training
    assert 'rope.freqs' in model.no_weight_decay()
    assert model.get_layer_depth('rope.freqs') == model.get_layer_depth('pos_embed') == (0, 4)


def test_attention_weights_need_the_rotation(tiny):
    model = VisionTransformer(**tiny, pos_embed=dict(rotary=dict(form='index'))).eval()
    tokens = torch.randn(1, 17, 32)
    weights = model.blocks[1].attn.weights(tokens, (4, 4), model.rope((4, 4), tokens)[1])
    torch.testing.assert_close(weights.sum(-1), torch.ones(1, 2, 17))
    with rejects('needs the rotation of its tokens'):
        model.blocks[1].attn.weights(tokens, (4, 4))


def test_initial_frequencies_are_rotated_axial_frequencies():
    rope = build_rotary(dict(form='mixed', temperature=100.0), **SIZES)
    sizes = rope.freqs.detach().square().sum(0).sqrt()  # (layers, heads, d/2)
    expected = torch.tensor([100.0 ** (-i / 4) for i in range(4)] * 2)
    torch.testing.assert_close(sizes, expected.expand(2, 2, -1))
    assert math.isclose(
        (rope.freqs[:, 0, 0, 0] * rope.freqs[:, 0, 0, 4]).sum().item(), 0, abs_tol=1e-6
    )


@pytest.mark.parametrize(
    ('change', 'words'),
    [
        (
            dict(arch=dict(embed_dims=36, num_layers=1, num_heads=2, feedforward_channels=8)),
            'heads whose width is a multiple of 4',
        ),
        (
            dict(pos_embed=dict(relative=True, rotary=dict(form='index'))),
            'relative or rotary positions; leave out one',
        ),
        (dict(pos_embed=dict(rotary=dict(temperature=1.0))), 'rotary needs form'),
        (
            dict(pos_embed=dict(rotary=dict(form='centred', native_grid=(2, 2)))),
            'no native_grid to scale them to; leave it out',
        ),
        (dict(pos_embed=dict(rotary=dict(form='spiral'))), "form='spiral' must be 'index'"),
        (dict(encoder=dict(num_kv_heads=3)), 'num_kv_heads=3 does not divide the 2 heads'),
    ],
)
def test_invalid_arguments_raise(tiny, change, words):
    with rejects(words):
        VisionTransformer(**{**tiny, 'pos_embed': dict(rotary=dict(form='index')), **change})


def test_angles_are_computed_once_for_all_blocks(tiny, monkeypatch):
    calls = []
    angles = AxialRotary.angles

    def recorded(*args):
        calls.append(args)
        return angles(*args)

    monkeypatch.setattr(AxialRotary, 'angles', recorded)
    VisionTransformer(**tiny, pos_embed=dict(rotary=dict(form='index'))).eval()(
        torch.randn(1, 3, 32, 32)
    )
    assert len(calls) == 1
