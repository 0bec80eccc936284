"""Attention with a bias per offset of patches, against timm's BEiT and the formula."""

import pytest
import torch
from attention_reference import block_cfg
from timm.models.beit import gen_relative_position_index
from torch import nn

from vit_plugin.arguments.encoder_options import WindowOptions
from vit_plugin.models.layers import BiasAttention, BiasWindowAttention
from vit_plugin.models.layers.block_cfg import RelativePositions
from vit_plugin.models.layers.position_bias import PositionBias, resample_bias


def layer_of(grid, has_tokens=True, form='bias', **cfg):
    """An attention layer for this grid, with random parameters."""
    positions = RelativePositions(grid, form, has_tokens)
    layer_class = BiasWindowAttention if cfg.get('window') else BiasAttention
    layer = layer_class(block_cfg(16, 2, relative=positions, **cfg)).double().eval()
    for parameter in layer.parameters():
        nn.init.normal_(parameter)
    return layer


def weights_by_formula(layer, x, bias):
    """Softmax of the scaled products of queries and keys plus a bias of shape (heads, N, N)."""
    q, k, _ = layer.project(x)
    return (q @ k.mT / q.shape[-1] ** 0.5 + bias).softmax(dim=-1)


@pytest.mark.parametrize('grid', [(3, 3), (2, 4)])
def test_bias_equals_beits_table_lookup(grid):
    module = PositionBias(RelativePositions(grid, 'bias', True), 3)
    nn.init.normal_(module.relative_position_bias_table)
    rows = gen_relative_position_index(grid)
    expected = module.relative_position_bias_table[rows].permute(2, 0, 1)
    assert torch.equal(module(grid), expected)
    without_tokens = PositionBias(RelativePositions(grid, 'bias'), 3)
    table = module.relative_position_bias_table[:-3]  # three rows are for the class token
    assert torch.equal(without_tokens.bias(table, grid), expected[:, 1:, 1:])


def test_weights_and_output_equal_the_formula():
    layer, x = layer_of((2, 3)), torch.randn(2, 7, 16, dtype=torch.float64)
    expected = weights_by_formula(layer, x, layer.rel_pos_bias((2, 3)))
    torch.testing.assert_close(layer.weights(x, (2, 3)), expected)
    _, _, v = layer.project(x)
    torch.testing.assert_close(layer(x, (2, 3)), layer.output(expected @ v))
    torch.testing.assert_close(layer(x, (2, 3), 1), layer(x, (2, 3))[:, :1])


def test_a_shared_bias_is_an_argument_of_the_forward():
    own = layer_of((2, 3))
    shared = layer_of((2, 3), form='shared_bias')
    shared.load_state_dict(own.state_dict(), strict=False)
    assert shared.rel_pos_bias is None
    x, bias = torch.randn(2, 7, 16, dtype=torch.float64), own.rel_pos_bias((2, 3))
    torch.testing.assert_close(shared(x, (2, 3), position_input=bias), own(x, (2, 3)))


def test_all_prefix_tokens_share_the_bias_of_the_class_token():
    layer, x = layer_of((2, 2)), torch.randn(1, 7, 16, dtype=torch.float64)
    bias = layer.rel_pos_bias((2, 2))
    rows = [0, 0, 0, 1, 2, 3, 4]  # the class token's for three prefix tokens, then four patches
    expected = weights_by_formula(layer, x, bias[:, rows][:, :, rows])
    torch.testing.assert_close(layer.weights(x, (2, 2)), expected)


def test_prefix_tokens_without_rows_in_the_table_have_no_bias():
    layer, x = layer_of((2, 2), has_tokens=False), torch.randn(1, 6, 16, dtype=torch.float64)
    bias = torch.zeros(2, 6, 6, dtype=torch.float64)
    bias[:, 2:, 2:] = layer.rel_pos_bias((2, 2))
    torch.testing.assert_close(layer.weights(x, (2, 2)), weights_by_formula(layer, x, bias))


def test_masked_keys_are_ignored():
    layer, x = layer_of((2, 2)), torch.randn(2, 5, 16, dtype=torch.float64)
    mask = torch.rand(2, 1, 2, 5) < 0.5
    mask[..., 0] = True  # at least one key for each query
    output = layer(x, (2, 2), mask=mask)
    bias = layer.rel_pos_bias((2, 2)).expand(2, -1, -1, -1).clone()
    bias[:, :, :2] = bias[:, :, :2].masked_fill(~mask, -torch.inf)
    q, k, v = layer.project(x)
    weights = (q @ k.mT / 8**0.5 + bias).softmax(dim=-1)
    torch.testing.assert_close(output, layer.output(weights @ v))


def test_a_window_of_the_size_of_the_grid_is_global_attention():
    layer, x = layer_of((3, 3), has_tokens=False), torch.randn(2, 9, 16, dtype=torch.float64)
    windowed = layer_of((3, 3), has_tokens=False, window=WindowOptions(size=3))
    windowed.load_state_dict(layer.state_dict())
    torch.testing.assert_close(windowed(x, (3, 3)), layer(x, (3, 3)))
    separate = torch.cat([part.flatten(1, 2) for part in x.unflatten(1, (3, 3)).split(3, 2)])
    torch.testing.assert_close(windowed(separate, (3, 3)), layer(separate, (3, 3)))


def test_a_linear_table_stays_monotonic_on_another_grid():
    y, x = torch.meshgrid(torch.arange(5.0), torch.arange(5.0), indexing='ij')
    table = torch.cat((torch.stack((y.flatten(), x.flatten()), dim=1), torch.ones(3, 2)))
    assert torch.equal(resample_bias(table, (3, 3), (3, 3)), table)
    larger = resample_bias(table, (3, 3), (5, 4))
    assert larger.shape == (9 * 7 + 3, 2)
    image = larger[:-3].unflatten(0, (9, 7))
    assert torch.equal(larger[-3:], table[-3:])
    torch.testing.assert_close(image[4, :, 0], torch.full((7,), 2.0))  # the middle stays in place
    torch.testing.assert_close(image[:, 3, 1], torch.full((9,), 2.0))
    assert (image[1:, :, 0] >= image[:-1, :, 0]).all()


def test_the_table_learns_from_the_first_query_alone():
    layer = layer_of((2, 2))
    layer(torch.randn(1, 5, 16, dtype=torch.float64), (2, 2), 1).sum().backward()
    assert layer.rel_pos_bias.relative_position_bias_table.grad.any()
