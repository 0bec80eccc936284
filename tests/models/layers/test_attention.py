import pytest
import torch

from vit_plugin.models.layers import Attention


def reference(layer: Attention, x: torch.Tensor, grid: tuple[int, int]) -> tuple[torch.Tensor, torch.Tensor]:
    """Output and weights by the formula, with the N x N bias written out."""
    b, n, c = x.shape
    heads, dims = layer.num_heads, c // layer.num_heads
    q, k, v = (t.reshape(b, n, heads, dims).transpose(1, 2) for t in layer.qkv(x).chunk(3, dim=-1))
    logits = q @ k.transpose(-2, -1) / dims**0.5
    if layer.rel_pos_h is not None:
        (h, w), prefix = grid, n - grid[0] * grid[1]
        for i in range(h * w):
            for j in range(h * w):
                query = q[:, :, prefix + i]
                logits[:, :, prefix + i, prefix + j] += (
                    query @ layer.rel_pos_h[i // w - j // w + h - 1] + query @ layer.rel_pos_w[i % w - j % w + w - 1])
    weights = logits.softmax(-1)
    return layer.proj((weights @ v).transpose(1, 2).reshape(b, n, c)), weights


@pytest.mark.parametrize('rel_pos_grid', [None, (3, 4)])
@pytest.mark.parametrize('prefix', [0, 1, 3])
def test_output_and_weights_are_the_formula(rel_pos_grid, prefix):
    layer = Attention(32, 4, rel_pos_grid=rel_pos_grid)
    for table in (layer.rel_pos_h, layer.rel_pos_w):
        if table is not None:
            torch.nn.init.normal_(table)
    x = torch.randn(2, prefix + 12, 32)
    output, weights = reference(layer, x, (3, 4))
    torch.testing.assert_close(layer(x, (3, 4)), output)
    torch.testing.assert_close(layer.weights(x, (3, 4)), weights)


def test_gradients_of_the_relative_positions():
    layer = Attention(16, 2, rel_pos_grid=(2, 3)).double()
    x = torch.randn(1, 7, 16, dtype=torch.float64)
    grads = []
    for output in (layer(x, (2, 3)), reference(layer, x, (2, 3))[0]):
        grads.append(torch.autograd.grad(output.square().sum(), list(layer.parameters())))
    for ours, theirs in zip(*grads, strict=True):
        torch.testing.assert_close(ours, theirs)


def test_weights_are_without_dropout():
    layer = Attention(32, 4, attn_drop_rate=0.5).train()
    torch.testing.assert_close(layer.weights(torch.randn(1, 5, 32), (2, 2)).sum(-1), torch.ones(1, 4, 5))


def test_no_bias():
    assert Attention(32, 4, qkv_bias=False).qkv.bias is None
