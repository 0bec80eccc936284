import pytest
import torch
from visualization_models import build

from vit_plugin.report.pictures import attention_distances, draw_attention_distances


def test_equal_weights_have_the_mean_distance_of_all_pairs(tiny):
    model = build('registers', tiny)
    for block in model.blocks:
        torch.nn.init.zeros_(block.attn.qkv.weight)
    y, x = torch.meshgrid(torch.arange(3.0), torch.arange(5.0), indexing='ij')
    places = torch.stack((y, x), -1).flatten(0, 1)
    mean = 8 * (places[:, None] - places).square().sum(-1).sqrt().mean()  # patches of 8 x 8 pixels
    torch.testing.assert_close(
        attention_distances(model, torch.randn(1, 3, 24, 40)), mean.expand(2, 2)
    )


def test_attention_in_windows_is_near(tiny):
    distances = attention_distances(build('windows', tiny), torch.randn(2, 3, 32, 32))
    assert distances[0].max() < 8 * 2**0.5
    assert distances[1].min() > distances[0].max()


def test_every_head_is_a_dot():
    (axes,) = draw_attention_distances(torch.rand(3, 4)).axes
    assert len(axes.get_lines()) == 4 + 1
    assert axes.get_ylim()[0] == pytest.approx(0)
