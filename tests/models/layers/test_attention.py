import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.autograd.graph import saved_tensors_hooks

from vit_plugin.models.layers import Attention, attention
from vit_plugin.models.layers.attention import WindowAttention, from_windows, to_windows


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


@pytest.mark.parametrize('part', [2**22, 1], ids=['all rows at once', 'one row at a time'])
@pytest.mark.parametrize('kept', [2**26, 1], ids=['kept', 'made anew'])
def test_gradients_of_the_relative_positions(monkeypatch, part, kept):
    monkeypatch.setitem(attention.PART_ELEMENTS, 'cpu', part)
    monkeypatch.setattr(attention, 'KEPT_ELEMENTS', kept)
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


def test_many_relative_positions_are_not_kept_for_the_backward_pass(monkeypatch):
    layer = Attention(16, 2, rel_pos_grid=(8, 8))
    x = torch.randn(1, 64, 16)
    sizes = []

    def largest_kept() -> int:
        sizes.clear()
        with saved_tensors_hooks(lambda tensor: sizes.append(tensor.numel()) or tensor, lambda tensor: tensor):
            layer(x, (8, 8))
        return max(sizes)

    assert largest_kept() >= 2 * 64 * 64
    monkeypatch.setattr(attention, 'KEPT_ELEMENTS', 2 * 64 * 63)
    monkeypatch.setitem(attention.PART_ELEMENTS, 'cpu', 2 * 64 * 16)
    assert largest_kept() < 2 * 64 * 64


@pytest.mark.parametrize('qkv_bias', [True, False])
@pytest.mark.parametrize('qk_norm_cfg', [None, dict(type='LN')])
@pytest.mark.parametrize('rel_pos_grid', [None, (2, 2)])
def test_the_first_queries_alone_give_the_same(qkv_bias, qk_norm_cfg, rel_pos_grid):
    layer = Attention(32, 4, qkv_bias, qk_norm_cfg=qk_norm_cfg, rel_pos_grid=rel_pos_grid)
    x = torch.randn(2, 5, 32)
    torch.testing.assert_close(layer(x, (2, 2), 1), layer(x, (2, 2))[:, :1])


def test_a_layer_put_in_place_of_the_projection_is_called():
    layer = Attention(32, 4)
    layer.qkv = nn.Sequential(layer.qkv, nn.Hardtanh())  # as LoRA does: no weight to take rows of
    x = torch.randn(2, 5, 32)
    torch.testing.assert_close(layer(x, (2, 2), 1), layer(x, (2, 2))[:, :1])


@given(h=st.integers(1, 7), w=st.integers(1, 7), size=st.integers(1, 5))
def test_windows_and_back(h, w, size):
    x = torch.randn(2, h * w, 3)
    windows = to_windows(x, (h, w), size)
    assert windows.shape == (2 * -(-h // size) * -(-w // size), size * size, 3)
    assert torch.equal(from_windows(windows, (h, w), size), x)
    image = x.unflatten(1, (h, w))
    first = image[0, :size, :size].flatten(0, 1)
    assert torch.equal(windows[0].unflatten(0, (size, size))[:min(h, size), :min(w, size)].flatten(0, 1), first)


def test_each_window_attends_to_itself_and_its_padding():
    layer = WindowAttention(3, 16, 2, rel_pos_grid=(3, 3))
    plain = Attention(16, 2, rel_pos_grid=(3, 3))
    plain.load_state_dict(layer.state_dict())
    x = torch.randn(1, 5 * 4, 16)
    image = torch.zeros(1, 6, 6, 16)
    image[:, :5, :4] = x.unflatten(1, (5, 4))
    for y in (0, 3):
        for column in (0, 3):
            image[:, y:y + 3, column:column + 3] = plain(
                image[:, y:y + 3, column:column + 3].flatten(1, 2), (3, 3)).unflatten(1, (3, 3))
    torch.testing.assert_close(layer(x, (5, 4)), image[:, :5, :4].flatten(1, 2))
    assert layer.weights(x, (5, 4)).shape == (4, 2, 9, 9)


def test_a_hook_on_the_projection_is_called_for_the_first_queries_too():
    layer, calls = Attention(32, 4), []
    layer.qkv.register_forward_hook(lambda module, args, out: calls.append(out.shape))
    layer(torch.randn(2, 5, 32), (2, 2), 1)
    assert calls == [(2, 5, 96)]
