import pytest
import torch
from visualization_models import build

from vit_plugin.errors import ConfigError
from vit_plugin.visualization import draw_filters, principal_filters


def test_the_first_component_is_the_direction_in_which_filters_differ(tiny):
    model = build('plain', tiny)
    direction = torch.nn.functional.normalize(torch.randn(3, 8, 8).flatten(), dim=0)
    with torch.no_grad():
        model.patch_embed.proj.weight.copy_((torch.randn(32, 1) * direction).unflatten(1, (3, 8, 8)))
    components = principal_filters(model, 3)
    assert components.shape == (3, 3, 8, 8)
    torch.testing.assert_close((components[0].flatten() @ direction).abs(), torch.tensor(1.))
    assert components[0].max() >= -components[0].min()


def test_a_hybrid_shows_its_cnn(tiny_hybrid):
    assert principal_filters(build('hybrid', tiny_hybrid)).shape[1:] == (3, 7, 7)


def test_filters_of_one_pixel_are_refused(tiny):
    model = build('plain', tiny, arch=dict(tiny['arch'], patch_size=1), img_size=4)
    with pytest.raises(ConfigError, match='one pixel at a time'):
        principal_filters(model)


@pytest.mark.parametrize('channels', [1, 3, 4])
def test_grey_and_colour(channels):
    figure = draw_filters(torch.randn(9, channels, 4, 4))
    assert sum(bool(axes.images) for axes in figure.axes) == 9
