import pytest
import torch

from vit_plugin.errors import ConfigError
from vit_plugin.models import TimmBackbone, TimmEmbed
from vit_plugin.models.layers.map_sizes import other_sizes

NAME = 'mobilevitv2_050'  # which pads inside
WORDS = 'returns maps of 4 x 6 for images of 96 x 160, where its stride of 32 states 3 x 5'


@pytest.mark.parametrize('name', ['test_byobnet', 'test_vit', 'hiera_tiny_224'])
def test_stated_sizes(name):
    """Also of a model that takes one size only, of which nothing is known."""
    with torch.device('meta'):
        model = TimmBackbone(name, out_type='pyramid', in_channels=1)
    assert model.training
    assert not other_sizes(model, model.strides, 1)
    assert other_sizes(model, [1 for _ in model.strides], 1) or name == 'hiera_tiny_224'


def test_other_sizes(monkeypatch):
    said = []
    monkeypatch.setattr(
        'vit_plugin.projects.timm_models.timm_backbone.print_log',
        lambda message, *args: said.append(message),
    )
    with torch.device('meta'):
        TimmBackbone(NAME)
        with pytest.raises(ConfigError, match=f'patch_embed: {NAME} {WORDS}'):
            TimmEmbed(NAME)
    assert said == [f'TimmBackbone {NAME} {WORDS}: take another model for boxes and masks.']
