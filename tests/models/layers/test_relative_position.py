"""Attention with ViTDet's relative positions, against the formula, also computed in parts."""

import pytest
import torch
from attention_reference import block_cfg, reference
from torch.autograd.graph import saved_tensors_hooks

from vit_plugin.models.layers import RelativeAttention, relative_position
from vit_plugin.models.layers.block_cfg import RelativePositions
from vit_plugin.models.layers.relative_position import relative_table


@pytest.mark.parametrize('prefix', [0, 1, 3])
def test_output_and_weights_equal_the_formula(prefix):
    layer = RelativeAttention(block_cfg(32, 4, relative=RelativePositions((3, 4))))
    for table in (layer.rel_pos_h, layer.rel_pos_w):
        torch.nn.init.normal_(table)
    x = torch.randn(2, prefix + 12, 32)
    output, weights = reference(layer, x, (3, 4))
    torch.testing.assert_close(layer(x, (3, 4)), output)
    torch.testing.assert_close(layer.weights(x, (3, 4)), weights)


@pytest.mark.parametrize('part_elements', [2**22, 1], ids=['all rows at once', 'row by row'])
@pytest.mark.parametrize('saved_elements', [2**26, 1], ids=['saved', 'recomputed'])
def test_gradients_equal_those_of_the_formula(monkeypatch, part_elements, saved_elements):
    monkeypatch.setitem(relative_position.PART_ELEMENTS, 'cpu', part_elements)
    monkeypatch.setattr(relative_position, 'SAVED_ELEMENTS', saved_elements)
    layer = RelativeAttention(block_cfg(16, 2, relative=RelativePositions((2, 3)))).double()
    x = torch.randn(1, 7, 16, dtype=torch.float64)
    grads = [
        torch.autograd.grad(output.square().sum(), list(layer.parameters()))
        for output in (layer(x, (2, 3)), reference(layer, x, (2, 3))[0])
    ]
    for ours, theirs in zip(*grads, strict=True):
        torch.testing.assert_close(ours, theirs)


def test_large_biases_are_not_saved_for_the_backward_pass(monkeypatch):
    layer = RelativeAttention(block_cfg(16, 2, relative=RelativePositions((8, 8))))
    x = torch.randn(1, 64, 16)

    def largest_saved_tensor() -> int:
        sizes = []

        def pack(tensor: torch.Tensor) -> torch.Tensor:
            sizes.append(tensor.numel())
            return tensor

        with saved_tensors_hooks(pack, lambda tensor: tensor):
            layer(x, (8, 8))
        return max(sizes)

    # The biases of 2 heads and 64 x 64 pairs of patches.
    assert largest_saved_tensor() >= 2 * 64 * 64
    monkeypatch.setattr(relative_position, 'SAVED_ELEMENTS', 2 * 64 * 63)
    monkeypatch.setitem(relative_position.PART_ELEMENTS, 'cpu', 2 * 64 * 16)
    assert largest_saved_tensor() < 2 * 64 * 64


def test_the_first_queries_alone_give_the_same_output_and_train_the_tables():
    layer = RelativeAttention(block_cfg(32, 4, relative=RelativePositions((2, 2))))
    x = torch.randn(2, 5, 32)
    alone = layer(x, (2, 2), 1)
    torch.testing.assert_close(alone, layer(x, (2, 2))[:, :1])
    alone.sum().backward()
    assert layer.rel_pos_h.grad is not None


def test_relative_table_looks_up_offsets():
    table = torch.arange(7.0)[:, None]  # offsets -3 .. 3
    looked_up = relative_table(table, 4)[..., 0]
    assert torch.equal(looked_up, 3.0 + torch.arange(4.0)[:, None] - torch.arange(4.0)[None])
    assert relative_table(table, 6).shape == (6, 6, 1)
