import torch
from attention_reference import small
from hypothesis import given
from hypothesis import strategies as st

from vit_plugin.models.layers import RelativeAttention, RelativeWindowAttention
from vit_plugin.models.layers.window import from_windows, to_windows


@given(h=st.integers(1, 7), w=st.integers(1, 7), size=st.integers(1, 5))
def test_windows_and_back(h, w, size):
    x = torch.randn(2, h * w, 3)
    windows = to_windows(x, (h, w), size)
    assert windows.shape == (2 * -(-h // size) * -(-w // size), size * size, 3)
    assert torch.equal(from_windows(windows, (h, w), size), x)
    image = x.unflatten(1, (h, w))
    first = image[0, :size, :size].flatten(0, 1)
    assert torch.equal(
        windows[0].unflatten(0, (size, size))[: min(h, size), : min(w, size)].flatten(0, 1), first
    )


def test_each_window_attends_to_itself_and_its_padding():
    layer = RelativeWindowAttention(small(16, 2, window_size=3, rel_pos_grid=(3, 3)))
    plain = RelativeAttention(small(16, 2, rel_pos_grid=(3, 3)))
    plain.load_state_dict(layer.state_dict())
    x = torch.randn(1, 5 * 4, 16)
    image = torch.zeros(1, 6, 6, 16)
    image[:, :5, :4] = x.unflatten(1, (5, 4))
    for y in (0, 3):
        for column in (0, 3):
            image[:, y : y + 3, column : column + 3] = plain(
                image[:, y : y + 3, column : column + 3].flatten(1, 2), (3, 3)
            ).unflatten(1, (3, 3))
    torch.testing.assert_close(layer(x, (5, 4)), image[:, :5, :4].flatten(1, 2))
    assert layer.weights(x, (5, 4)).shape == (4, 2, 9, 9)
