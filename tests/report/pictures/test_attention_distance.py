"""Mean attention distances, for attention weights that are known."""

import pytest
import torch
from visualization_models import build

from vit_plugin.report.pictures import attention_distances, draw_attention_distances


def test_uniform_attention_has_the_mean_distance_of_all_pairs(tiny):
    model = build('registers', tiny)
    for block in model.blocks:
        torch.nn.init.zeros_(block.attn.qkv.weight)
    y, x = torch.meshgrid(torch.arange(3.0), torch.arange(5.0), indexing='ij')
    centers = 8 * torch.stack((y, x), -1).flatten(0, 1)  # patches of 8 x 8 pixels
    mean = (centers[:, None] - centers).square().sum(-1).sqrt().mean()
    torch.testing.assert_close(
        attention_distances(model, torch.randn(1, 3, 24, 40)), mean.expand(2, 2)
    )


def test_attention_in_windows_has_small_distances(tiny):
    distances = attention_distances(build('windows', tiny), torch.randn(2, 3, 32, 32))
    assert distances[0].max() < 8 * 2**0.5  # the diagonal of a window of 2 x 2 patches
    assert distances[1].min() > distances[0].max()


def test_each_head_is_drawn_as_a_dot():
    (axes,) = draw_attention_distances(torch.rand(3, 4)).axes
    assert len(axes.get_lines()) == 4 + 1  # heads, and their mean
    assert axes.get_ylim()[0] == pytest.approx(0)
