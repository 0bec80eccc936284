import pytest
import torch
from torch.nn.functional import multi_head_attention_forward

from vit_plugin.errors import ConfigError
from vit_plugin.models import TokenPooling


def test_modes():
    tokens = torch.randn(2, 10, 8)
    expected = dict(cls=tokens[:, 0], avg=tokens[:, 1:].mean(1), gap=tokens.mean(1), max=tokens[:, 1:].max(1).values)
    for mode, value in expected.items():
        first, second = TokenPooling(mode)((tokens, 2 * tokens))
        torch.testing.assert_close(first, value)
        torch.testing.assert_close(second, 2 * value)


@pytest.mark.parametrize('mode', ['avg', 'gap', 'max'])
def test_feature_map_has_no_extra_tokens(mode):
    image = torch.randn(2, 8, 3, 4)
    pooled, = TokenPooling(mode, num_extra_tokens=1)((image, ))
    torch.testing.assert_close(pooled, image.amax((2, 3)) if mode == 'max' else image.mean((2, 3)))


def test_map_is_multi_head_attention_of_one_query():
    pool = TokenPooling('map', in_channels=32, map_cfg=dict(num_heads=4))
    layers = pool.attn_pool
    tokens = torch.randn(2, 10, 32)
    torch.nn.init.normal_(layers.kv.bias)
    query = layers.latent.expand(2, -1, -1).transpose(0, 1)
    keys = tokens.transpose(0, 1)
    attended, _ = multi_head_attention_forward(
        query, keys, keys, 32, 4, torch.cat((layers.q.weight, layers.kv.weight)),
        torch.cat((layers.q.bias, layers.kv.bias)), None, None, False, 0., layers.proj.weight, layers.proj.bias)
    expected = (attended + layers.mlp(layers.norm(attended)))[0]
    torch.testing.assert_close(pool((tokens, ))[0], expected)


@pytest.mark.parametrize(('kwargs', 'words'), [
    (dict(mode='mean'), "Unknown mode 'mean'; choose one of cls, avg, gap, max, map"),
    (dict(mode='cls', num_extra_tokens=0), 'needs a class token'),
    (dict(mode='map'), 'needs in_channels'),
    (dict(mode='map', in_channels=32, map_cfg=dict(num_heads=5)), 'in_channels=32 is not divisible by num_heads=5')])
def test_bad_input(kwargs, words):
    with pytest.raises(ConfigError, match=words):
        TokenPooling(**kwargs)


def test_cls_of_a_feature_map():
    with pytest.raises(ConfigError, match="out_type='raw'"):
        TokenPooling('cls')((torch.randn(1, 8, 2, 2), ))
