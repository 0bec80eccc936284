"""Attention by its formula, and with only the first queries."""

import pytest
import torch
from attention_reference import block_cfg, reference
from torch import nn

from vit_plugin.models.layers import Attention


@pytest.mark.parametrize('prefix', [0, 1, 3])
def test_output_and_weights_equal_the_formula(prefix):
    layer = Attention(block_cfg(32, 4))
    x = torch.randn(2, prefix + 12, 32)
    output, weights = reference(layer, x, (3, 4))
    torch.testing.assert_close(layer(x, (3, 4)), output)
    torch.testing.assert_close(layer.weights(x, (3, 4)), weights)


def test_attention_weights_ignore_dropout():
    layer = Attention(block_cfg(32, 4, attn_drop_rate=0.5)).train()
    torch.testing.assert_close(
        layer.weights(torch.randn(1, 5, 32), (2, 2)).sum(-1), torch.ones(1, 4, 5)
    )


@pytest.mark.parametrize('qkv_bias', [True, False])
@pytest.mark.parametrize('qk_norm', [False, True])
def test_the_first_queries_alone_give_the_same_output(qkv_bias, qk_norm):
    layer = Attention(block_cfg(32, 4, qkv_bias=qkv_bias, qk_norm=qk_norm))
    x = torch.randn(2, 5, 32)
    torch.testing.assert_close(layer(x, (2, 2), 1), layer(x, (2, 2))[:, :1])


def test_a_layer_in_place_of_the_projection_is_called():
    layer = Attention(block_cfg(32, 4))
    # Like a LoRA layer, this has no weight to take rows of.
    layer.qkv = nn.Sequential(layer.qkv, nn.Hardtanh())
    x = torch.randn(2, 5, 32)
    torch.testing.assert_close(layer(x, (2, 2), 1), layer(x, (2, 2))[:, :1])


def test_a_hook_on_the_projection_sees_all_queries():
    layer, calls = Attention(block_cfg(32, 4)), []
    layer.qkv.register_forward_hook(lambda module, args, out: calls.append(out.shape))
    layer(torch.randn(2, 5, 32), (2, 2), 1)
    assert calls == [(2, 5, 96)]
