"""The CNN of a ViT-Adapter: sizes of its maps, and gradients of all parameters."""

import pytest
import torch
from model_states import assert_all_learn

from vit_plugin.projects.vit_adapter.spatial_prior import SpatialPrior


@pytest.mark.parametrize('size', [(64, 96), (33, 71)])
@pytest.mark.parametrize('with_finest', [True, False])
def test_maps_have_the_sizes_of_their_strides(size, with_finest):
    prior = SpatialPrior(3, 4, 8, dict(type='GN', num_groups=2), with_finest)
    maps = prior(torch.randn(1, 3, *size))
    strides = (4, 8, 16, 32) if with_finest else (8, 16, 32)
    assert [tuple(x.shape) for x in maps] == [
        (1, 8, *(-(-side // s) for side in size)) for s in strides
    ]
    sum(x.sum() for x in maps).backward()
    assert_all_learn(prior)
