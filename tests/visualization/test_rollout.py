import torch
from visualization_models import build

from vit_plugin.visualization import attention_rollout, attention_weights


def test_rollout_is_the_product_of_the_blocks(tiny):
    model, images = build('registers', tiny), torch.randn(2, 3, 32, 32)
    first, second = (0.5 * weights.mean(1) + 0.5 * torch.eye(20) for weights in attention_weights(model, images))
    maps = attention_rollout(model, images)
    assert maps.shape == (2, 2, 4, 4)
    torch.testing.assert_close(maps[:, 1].flatten(1), (second @ first)[:, 0, 4:])


def test_without_a_class_token_it_is_the_mean_of_the_patches(tiny):
    model = build('windows', tiny)
    maps = attention_rollout(model, torch.randn(1, 3, 32, 32))
    torch.testing.assert_close(maps[0, 1].sum(), torch.tensor(1.))
