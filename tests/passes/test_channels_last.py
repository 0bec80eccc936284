"""Channels-last maps in a ResNet stem: where the pass applies, and that it is undone."""

import pytest
import torch

from vit_plugin.models import VisionTransformer
from vit_plugin.passes import optimize, processor, restore

TINY = dict(
    img_size=64,
    arch=dict(
        embed_dims=32,
        num_layers=1,
        num_heads=2,
        feedforward_channels=64,
        patch_size=1,
        resnet=dict(stage_depths=(1, 1), width=32),
    ),
)


@pytest.mark.parametrize(
    ('instruction_set', 'changes'),
    [('AMX', True), ('AVX-512', False), ('AVX2', False), ('', False)],
)
def test_the_memory_format_depends_on_the_instruction_set(monkeypatch, instruction_set, changes):
    """Values do not change, and the pass is undone."""
    monkeypatch.setattr(processor, 'instruction_set', lambda: instruction_set)
    torch.manual_seed(0)
    model, images = VisionTransformer(**TINY).eval(), torch.randn(2, 3, 64, 64)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    kernel = model.patch_embed.backbone.stages[0].blocks[0].conv2.weight
    formats = []
    model.patch_embed.backbone.stages[0].register_forward_hook(
        lambda module, args, out: formats.append(
            out.is_contiguous(memory_format=torch.channels_last)
        )
    )
    with torch.no_grad():
        expected = model(images)[0]
        torch.testing.assert_close(optimize(model)(images)[0], expected)
    assert formats == [False, changes]
    assert kernel.is_contiguous(memory_format=torch.channels_last) == changes
    assert kernel is restore(model).patch_embed.backbone.stages[0].blocks[0].conv2.weight
    assert kernel.is_contiguous()
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_a_memory_format_set_by_the_user_is_kept(monkeypatch):
    monkeypatch.setattr(processor, 'instruction_set', lambda: 'AVX2')
    model = VisionTransformer(**TINY).eval().to(memory_format=torch.channels_last)
    restore(optimize(model))
    assert (
        model.patch_embed.backbone.stages[0]
        .blocks[0]
        .conv2.weight.is_contiguous(memory_format=torch.channels_last)
    )
