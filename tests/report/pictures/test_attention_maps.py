"""Attention weights, which must reproduce the output of the model's own layers, and rollout."""

import pytest
import torch
from rejection import rejects
from tiny_models import randomize
from visualization_models import KINDS, build

from vit_plugin.models import ViTAdapter
from vit_plugin.models.layers.attention import Attention
from vit_plugin.report.pictures import attention_rollout, attention_weights, class_attention


@pytest.mark.parametrize('kind', KINDS)
def test_weights_times_values_equal_the_layers_output(kind, tiny, tiny_hybrid):
    model = build(kind, tiny_hybrid if kind == 'hybrid' else tiny)
    randomize(model, std=0.2)  # relative positions begin at zero
    calls = []
    layers = [module for module in model.modules() if isinstance(module, Attention)]
    for layer in layers:
        layer.register_forward_hook(
            lambda layer, args, output: calls.append((layer, args[0], output))
        )
    images = torch.randn(2, 3, 32, 32)
    weights = attention_weights(model, images)
    per_block = len(layers) // len(weights)
    assert len(calls) == len(layers)
    assert len(weights) == len(model.blocks)
    for i, (layer, x, output) in enumerate(calls):
        # Several layers of a block have their heads next to each other.
        weights_of_layer = weights[i // per_block].chunk(per_block, dim=1)[i % per_block]
        values = (
            layer.qkv(x).chunk(3, dim=-1)[2].unflatten(-1, (layer.num_heads, -1)).transpose(1, 2)
        )
        torch.testing.assert_close(
            layer.output(weights_of_layer @ values)[:, : output.shape[1]],
            output,
            atol=1e-5,
            rtol=1e-5,
        )


def test_maps_have_the_grid_of_images_that_are_not_square(tiny):
    model = build('plain', tiny)
    maps = class_attention(model, torch.randn(1, 3, 24, 48))
    assert maps.shape == (1, 2, 2, 3, 6)
    weights = attention_weights(model, torch.randn(1, 3, 24, 48))[0]
    torch.testing.assert_close(weights.sum(-1), torch.ones(1, 2, 19))


def test_class_attention_is_that_of_the_class_token_to_the_patches(tiny):
    model, images = build('registers', tiny), torch.randn(1, 3, 32, 32)
    weights = attention_weights(model, images)
    maps = class_attention(model, images)
    torch.testing.assert_close(maps[0, 1].flatten(1), weights[1][0, :, 0, 4:])


def test_class_attention_without_a_class_token_is_the_mean_of_the_patches(tiny):
    model, images = build('windows', tiny), torch.randn(1, 3, 32, 32)
    maps = class_attention(model, images)
    torch.testing.assert_close(
        maps[0, 1].flatten(1), attention_weights(model, images)[1][0].mean(dim=1)
    )


def test_padding_of_windows_is_left_out(tiny):
    model = build('windows', tiny)
    # A grid of 3 x 3 patches in windows of 2 x 2.
    first, _ = attention_weights(model, torch.randn(1, 3, 24, 24))
    sums = first[0, 0].sum(-1)
    torch.testing.assert_close(sums[[0, 1, 3, 4]], torch.ones(4))
    assert (sums[[2, 5, 6, 7, 8]] < 1).all()
    assert first[0, 0, 0, 2] == 0  # in the next window


def test_the_model_keeps_its_mode(tiny):
    model = build('plain', tiny, drop_rate=0.5).train()
    first, second = (attention_weights(model, torch.ones(1, 3, 32, 32)) for _ in range(2))
    assert model.training
    assert model.blocks[0].training
    assert torch.equal(first[1], second[1])
    assert not model.blocks[0].attn._forward_pre_hooks


def test_weights_of_a_vit_adapter_are_those_of_its_backbone(tiny):
    adapter = ViTAdapter(
        dict(tiny, with_cls_token=False),
        interactions=2,
        norm_cfg=dict(type='BN'),
        attention=dict(num_heads=2),
        init_values=1.0,
    ).eval()
    images = torch.randn(1, 3, 32, 32)
    assert [weights.shape for weights in attention_weights(adapter, images)] == 2 * [(1, 2, 16, 16)]


def test_invalid_input_raises(tiny):
    images = torch.randn(1, 3, 32, 32)
    with rejects(r'of 16,385 tokens has 4,295,491,600 weights'):
        attention_weights(build('plain', tiny), torch.zeros(8, 3, 1024, 1024))
    with rejects(r'A model with one vit_plugin\.VisionTransformer is needed'):
        attention_weights(torch.nn.Linear(1, 1), images)


def test_rollout_is_the_product_of_the_blocks(tiny):
    model, images = build('registers', tiny), torch.randn(2, 3, 32, 32)
    first, second = (
        0.5 * weights.mean(1) + 0.5 * torch.eye(20) for weights in attention_weights(model, images)
    )
    maps = attention_rollout(model, images)
    assert maps.shape == (2, 2, 4, 4)
    torch.testing.assert_close(maps[:, 1].flatten(1), (second @ first)[:, 0, 4:])


def test_rollout_without_a_class_token_is_the_mean_of_the_patches(tiny):
    model = build('windows', tiny)
    maps = attention_rollout(model, torch.randn(1, 3, 32, 32))
    torch.testing.assert_close(maps[0, 1].sum(), torch.tensor(1.0))
