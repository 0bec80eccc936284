"""Find models of timm whose maps do not have the stated strides."""

import pytest
import timm
import torch
from rejection import rejects

from vit_plugin.models import TimmEmbed
from vit_plugin.models.layers.map_sizes import find_size_mismatch

NAME = 'mobilevitv2_050'  # a model that enlarges its maps to whole patches
MESSAGE = 'returns maps of 4 x 6 for images of 96 x 160, where its stride of 32 states 3 x 5'


@pytest.mark.parametrize('name', ['test_byobnet', 'test_vit', 'hiera_tiny_224'])
def test_maps_with_the_stated_strides_are_accepted(name):
    """The maps of a model that takes only one image size are not compared."""
    with torch.device('meta'):
        model = timm.create_model(name, features_only=True, in_chans=1)
    strides = model.feature_info.reduction()
    assert model.training
    assert not find_size_mismatch(model, strides, 1)
    assert model.training
    if name == 'test_byobnet':  # takes any size
        assert find_size_mismatch(model, [1 for _ in strides], 1)


def test_maps_of_other_sizes_raise():
    with torch.device('meta'), rejects(f'patch_embed: {NAME} {MESSAGE}'):
        TimmEmbed(NAME)
