"""The features of patches and their colors, which several images share."""

import numpy as np
import pytest
import torch
from visualization_models import KINDS, build

from vit_plugin.report.pictures import draw_feature_colors, feature_colors, patch_features


@pytest.mark.parametrize('kind', KINDS)
def test_features_equal_the_feature_map(kind, tiny, tiny_hybrid):
    model, images = (
        build(kind, tiny_hybrid if kind == 'hybrid' else tiny),
        torch.randn(2, 3, 24, 40),
    )
    features = patch_features(model, images)
    model.out_type = 'featmap'
    torch.testing.assert_close(features, model(images)[-1])


def test_images_of_several_sizes_share_their_colors():
    base = torch.randn(16)
    first, second = torch.zeros(16, 2, 3), torch.zeros(16, 4, 4)
    # The first row of one image and the lower half of the other have the same feature.
    first[:, 0], second[:, 2:] = base[:, None], base[:, None, None]
    colors = feature_colors(
        [first + 0.01 * torch.randn(16, 2, 3), second + 0.01 * torch.randn(16, 4, 4)]
    )
    assert [tuple(image.shape) for image in colors] == [(2, 3, 3), (4, 4, 3)]
    assert all(image.min() >= 0 and image.max() <= 1 for image in colors)
    assert (colors[0][0, :, 0] - colors[1][2:, :, 0].mean()).abs().max() < 0.2
    assert (colors[0][1, :, 0] - colors[1][2:, :, 0].mean()).abs().min() > 0.6
    figure = draw_feature_colors([np.zeros((16, 24, 3)), np.zeros((32, 32, 3))], colors)
    assert len(figure.axes) == 4
