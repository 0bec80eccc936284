import pytest
import timm
import torch
from rejection import rejects

from vit_plugin.models import TimmEmbed
from vit_plugin.models.layers.map_sizes import other_sizes

NAME = 'mobilevitv2_050'  # which pads inside
WORDS = 'returns maps of 4 x 6 for images of 96 x 160, where its stride of 32 states 3 x 5'


@pytest.mark.parametrize('name', ['test_byobnet', 'test_vit', 'hiera_tiny_224'])
def test_stated_sizes(name):
    """Also of a model that takes one size only, of which nothing is known."""
    with torch.device('meta'):
        model = timm.create_model(name, features_only=True, in_chans=1)
    strides = model.feature_info.reduction()
    assert model.training
    assert not other_sizes(model, strides, 1)
    assert model.training
    assert other_sizes(model, [1 for _ in strides], 1) or name != 'test_byobnet'


def test_other_sizes():
    with torch.device('meta'), rejects(f'patch_embed: {NAME} {WORDS}'):
        TimmEmbed(NAME)
