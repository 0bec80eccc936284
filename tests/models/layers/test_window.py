"""Split patches into windows and attend within each."""

import math

import torch
from attention_reference import block_cfg
from hypothesis import given
from hypothesis import strategies as st

from vit_plugin.arguments.encoder_options import WindowOptions
from vit_plugin.models.layers import RelativeAttention, RelativeWindowAttention
from vit_plugin.models.layers.block_cfg import RelativePositions
from vit_plugin.models.layers.window import from_windows, to_windows


@given(h=st.integers(1, 7), w=st.integers(1, 7), rows=st.integers(1, 5), columns=st.integers(1, 5))
def test_windows_are_crops_and_joining_them_inverts_the_split(h, w, rows, columns):
    x = torch.randn(2, h * w, 3)
    windows = to_windows(x, (h, w), (rows, columns))
    count = math.ceil(h / rows) * math.ceil(w / columns)
    assert windows.shape == (2 * count, rows * columns, 3)
    assert torch.equal(from_windows(windows, (h, w), (rows, columns)), x)
    # The first window is the upper left crop, padded if the grid is smaller.
    first = x.unflatten(1, (h, w))[0, :rows, :columns].flatten(0, 1)
    window = windows[0].unflatten(0, (rows, columns))
    assert torch.equal(window[: min(h, rows), : min(w, columns)].flatten(0, 1), first)


def test_windows_of_a_fixed_number_grow_with_the_image():
    options = WindowOptions(number=2)
    assert [options.within(grid) for grid in ((8, 8), (6, 10), (5, 3))] == [(4, 4), (3, 5), (3, 2)]


def test_attention_in_windows_equals_attention_on_each_padded_window():
    layer = RelativeWindowAttention(
        block_cfg(16, 2, window=WindowOptions(size=3), relative=RelativePositions((3, 3)))
    )
    plain = RelativeAttention(block_cfg(16, 2, relative=RelativePositions((3, 3))))
    plain.load_state_dict(layer.state_dict())
    x = torch.randn(1, 5 * 4, 16)
    padded = torch.zeros(1, 6, 6, 16)
    padded[:, :5, :4] = x.unflatten(1, (5, 4))
    expected = torch.empty_like(padded)
    for row in (0, 3):
        for column in (0, 3):
            window = padded[:, row : row + 3, column : column + 3].flatten(1, 2)
            expected[:, row : row + 3, column : column + 3] = plain(window, (3, 3)).unflatten(
                1, (3, 3)
            )
    torch.testing.assert_close(layer(x, (5, 4)), expected[:, :5, :4].flatten(1, 2))
    assert layer.weights(x, (5, 4)).shape == (4, 2, 9, 9)  # (windows, heads, tokens, tokens)
