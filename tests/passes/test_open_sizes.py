"""Replace layers that would fix the image size of an exported graph, and restore them."""

import pytest
import torch
from torch import nn

from vit_plugin.passes.open_sizes import OpenPool, open_sizes


@pytest.mark.parametrize('count', [(2, 2), (3, 5), (6, 6), (None, 3)])
@pytest.mark.parametrize('size', [(6, 6), (7, 13), (3, 2), (1, 1)])
def test_open_pool_equals_torchs_adaptive_pooling(size, count):
    x = torch.randn(2, 3, *size)
    torch.testing.assert_close(OpenPool(count)(x), nn.AdaptiveAvgPool2d(count)(x))


def test_open_sizes_restores_the_model():
    model = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Sequential(nn.AdaptiveAvgPool2d((2, 3))))
    before = [*model.modules()]
    with open_sizes(model):
        assert model[0] is before[1]  # a global mean is not replaced
        assert model[1][0].size == (2, 3)
    assert [*model.modules()] == before


@pytest.mark.filterwarnings('ignore')
def test_mmsegmentations_resize_does_not_warn():
    wrappers = pytest.importorskip('mmseg.models.utils.wrappers')
    from mmseg.models.decode_heads import decode_head

    with open_sizes(nn.Identity()):
        assert decode_head.resize.keywords == dict(warning=False)
    assert decode_head.resize is wrappers.resize
