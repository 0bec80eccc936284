"""Tables are resampled to other grids as in the code of their authors."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.ndimage import zoom

from vit_plugin.models.layers.grid_resize import resize_grid

sides = st.integers(1, 9)


@given(
    grid=st.tuples(sides, sides), mode=st.sampled_from(['bilinear', 'bicubic', 'bicubic_dinov2'])
)
def test_resize_to_the_same_grid_is_the_identity(grid, mode):
    table = torch.randn(1, grid[0] * grid[1], 4)
    assert resize_grid(table, grid, grid, mode) is table


@given(old=st.tuples(sides, sides), new=st.tuples(sides, sides))
def test_bilinear_equals_scipys_zoom_of_the_authors(old, new):
    table = torch.randn(1, old[0] * old[1], 3, dtype=torch.float32)
    factors = (new[0] / old[0], new[1] / old[1], 1)
    theirs = zoom(table.numpy().reshape(*old, 3), factors, order=1)
    ours = resize_grid(table, old, new).reshape(*new, 3)
    np.testing.assert_allclose(ours.numpy(), theirs, atol=1e-5)


@given(old=st.tuples(sides, sides), new=st.tuples(sides, sides))
def test_bicubic_dinov2_equals_the_authors_code(old, new):
    """facebookresearch/dinov2, `interpolate_pos_encoding`: bicubic without antialiasing, with a
    scale for 0.1 patches more.
    """
    table = torch.randn(1, old[0] * old[1], 3)
    if old != new:
        image = table.reshape(1, *old, 3).permute(0, 3, 1, 2)
        scale = ((new[0] + 0.1) / old[0], (new[1] + 0.1) / old[1])
        expected = torch.nn.functional.interpolate(
            image, scale_factor=scale, mode='bicubic', antialias=False
        )
        assert expected.shape[2:] == new
        torch.testing.assert_close(
            resize_grid(table, old, new, 'bicubic_dinov2'),
            expected.permute(0, 2, 3, 1).flatten(1, 2),
        )
