"""Pool tokens or feature maps to one vector, in each mode."""

import pytest
import torch
from rejection import rejects
from torch.nn.functional import multi_head_attention_forward

from vit_plugin.models import TokenPooling


def test_modes_without_parameters():
    tokens = torch.randn(2, 10, 8)
    expected = dict(cls=tokens[:, 0], avg=tokens[:, 1:].mean(1), gap=tokens.mean(1))
    expected['cls_avg'] = torch.cat((expected['cls'], expected['avg']), dim=1)
    for mode, value in expected.items():
        first, second = TokenPooling(mode, num_prefix_tokens=1)((tokens, 2 * tokens))
        torch.testing.assert_close(first, value)
        torch.testing.assert_close(second, 2 * value)


def test_a_norm_has_the_width_of_the_joined_vector():
    norm = dict(in_channels=8, norm_cfg=dict(type='LN'))
    (pooled,) = TokenPooling('cls_avg', num_prefix_tokens=1, **norm)((torch.randn(2, 10, 8),))
    assert pooled.shape == (2, 16)


@pytest.mark.parametrize('num_prefix_tokens', [None, 0, 1])
@pytest.mark.parametrize('mode', ['avg', 'gap'])
def test_a_feature_map_has_no_prefix_tokens(mode, num_prefix_tokens):
    image = torch.randn(2, 8, 3, 4)
    (pooled,) = TokenPooling(mode, num_prefix_tokens)((image,))
    torch.testing.assert_close(pooled, image.mean((2, 3)))


def test_mode_map_is_multi_head_attention_with_one_query():
    pool = TokenPooling('map', in_channels=32, map_cfg=dict(num_heads=4))
    layers = pool.attn_pool
    tokens = torch.randn(2, 10, 32)
    torch.nn.init.normal_(layers.kv.bias)
    query = layers.latent.expand(2, -1, -1).transpose(0, 1)
    keys = tokens.transpose(0, 1)
    attended, _ = multi_head_attention_forward(
        query,
        keys,
        keys,
        32,
        4,
        torch.cat((layers.q.weight, layers.kv.weight)),
        torch.cat((layers.q.bias, layers.kv.bias)),
        *(None, None, False, 0.0),  # no biases or zeros as additional keys, no dropout
        layers.proj.weight,
        layers.proj.bias,
    )
    expected = (attended + layers.mlp(layers.norm(attended)))[0]
    torch.testing.assert_close(pool((tokens,))[0], expected)


@pytest.mark.parametrize(
    ('kwargs', 'words'),
    [
        (
            dict(mode='mean'),
            "mode='mean' must be 'cls', 'avg', 'gap', 'prefix', 'cls_avg' or 'map'",
        ),
        (dict(mode='cls', num_prefix_tokens=0), 'needs a class token'),
        (dict(mode='avg', map_cfg=dict(num_heads=2)), "map_cfg is for mode='map'"),
        (dict(mode='map'), 'needs in_channels'),
        (dict(norm_cfg=dict(type='LN')), 'a norm_cfg needs in_channels'),
        (
            dict(mode='map', in_channels=96),
            r'in_channels=96 needs the number of heads.*num_heads=\.\.\.',
        ),
        (
            dict(mode='map', in_channels=32, map_cfg=dict(num_heads=5)),
            'in_channels=32 is not divisible by num_heads=5',
        ),
    ],
)
def test_invalid_arguments_raise(kwargs, words):
    with rejects(words):
        TokenPooling(**kwargs)


def test_tokens_without_patches_raise():
    with rejects('leaves out num_prefix_tokens=10 tokens, but there are only 10'):
        TokenPooling('avg', num_prefix_tokens=10)((torch.randn(2, 10, 8),))


def test_mode_cls_on_a_feature_map_raises():
    with rejects("out_type='raw'"):
        TokenPooling('cls')((torch.randn(1, 8, 2, 2),))


def test_tokens_without_num_prefix_tokens_raise():
    with rejects("needs num_prefix_tokens.*out_type='featmap'"):
        TokenPooling('avg')((torch.randn(1, 10, 8),))


@pytest.mark.parametrize(('width', 'heads'), [(384, 6), (768, 12), (1024, 16), (1152, 16)])
def test_mode_map_has_the_encoders_number_of_heads_by_default(width, heads):
    with torch.device('meta'):
        assert TokenPooling('map', in_channels=width).attn_pool.num_heads == heads


def test_a_norm_follows_the_pooling():
    neck = TokenPooling(
        'avg', num_prefix_tokens=1, in_channels=8, norm_cfg=dict(type='LN', eps=1e-6)
    )
    (pooled,) = neck((torch.randn(2, 10, 8),))
    torch.testing.assert_close(pooled.mean(-1), torch.zeros(2), atol=1e-6, rtol=0)
    assert set(neck.state_dict()) == {'norm.weight', 'norm.bias'}
