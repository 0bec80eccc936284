"""Precomputed kernels and position tables, for exports.

Within the context, parameters are replaced by what is computed from them. The outputs stay the
same, and afterward the model is restored.
"""

import pytest
import torch
from torch import nn

from vit_plugin.models import VisionTransformer
from vit_plugin.passes.fold import fold
from vit_plugin.passes.precompute import precomputed

POSITIONS = [
    'none',
    'learned',
    'learned_2d',
    'sincos2d',
    'relative',
    dict(type='learned', relative=True, prefix_rows=False),
    dict(type='none', relative='bias'),
    dict(type='learned', relative='shared_bias'),
    dict(type='learned', interpolate_mode='bicubic'),
    dict(type='learned', interpolate_mode='bicubic_dinov2'),
]
SIZE = (40, 24)  # of images with 5 x 3 patches, where the native grid is 4 x 4


def build(cfg: dict, **changes) -> VisionTransformer:
    """A model with random parameters that returns all tokens."""
    model = VisionTransformer(**{**cfg, 'out_type': 'raw', **changes}).eval()
    for parameter in model.parameters():  # zeros would hide mistakes
        nn.init.normal_(parameter, std=0.2)
    return model


def snapshot(model: nn.Module) -> dict[str, tuple]:
    """The names of attributes of each module, and the identities of its parameters."""
    return {
        name: (
            set(vars(module)),
            {key: id(value) for key, value in module.named_parameters(recurse=False)},
        )
        for name, module in model.named_modules()
    }


@torch.no_grad()
@pytest.mark.parametrize('size', [SIZE, (32, 32)], ids=str)
@pytest.mark.parametrize('pos_embed', POSITIONS, ids=str)
def test_precomputed_models_give_the_same_outputs_and_are_restored(tiny_hybrid, pos_embed, size):
    model, images = build(tiny_hybrid, pos_embed=pos_embed), torch.randn(2, 3, *size)
    before, expected = snapshot(model), model(images)[0]
    with precomputed(model, size):
        assert torch.equal(model(images)[0], expected)
        # The kernel is standardized.
        assert model.patch_embed.backbone.stem.conv.weight.mean((1, 2, 3)).abs().max() < 1e-6
    assert torch.equal(model(images)[0], expected)
    assert snapshot(model) == before


@torch.no_grad()
def test_without_a_size_only_what_no_size_changes_is_precomputed(tiny_hybrid):
    model = build(
        tiny_hybrid,
        pos_embed=dict(type='learned', relative=True),
        with_cls_token=False,
        encoder=dict(window=dict(size=3, global_blocks=(1,))),
    )
    shapes = [block.attn.rel_pos_h.shape for block in model.blocks]
    with precomputed(model):
        # The first block has windows of 3 x 3 patches at any size: one vector per pair of rows.
        assert model.blocks[0].attn.rel_pos_h.shape == (3, 3, 16)
        # The second is global, and keeps its table.
        assert model.blocks[1].attn.rel_pos_h.shape == shapes[1]
        precomputed_outputs = [model(torch.ones(1, 3, *size))[0] for size in (SIZE, (32, 32))]
    for output, size in zip(precomputed_outputs, (SIZE, (32, 32)), strict=True):
        assert torch.equal(model(torch.ones(1, 3, *size))[0], output)


def test_the_model_is_restored_after_an_error(tiny_hybrid):
    model = build(tiny_hybrid, pos_embed='sincos2d')
    before = snapshot(model)

    def fail() -> None:
        with precomputed(model, SIZE):
            assert model.pos_embed is not None  # fixed sines have no parameter outside the context
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert snapshot(model) == before


def test_folded_model_stays_folded(tiny_hybrid):
    model = build(tiny_hybrid)
    fold(model)
    before = snapshot(model)
    with precomputed(model, SIZE):
        pass
    assert snapshot(model) == before
