"""Properties that every stem has, and details of single stems."""

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from model_states import assert_all_learn
from rejection import rejects
from torch import nn

from vit_plugin.models import (
    ConvEmbed,
    FlexiPatchEmbed,
    MBConvEmbed,
    PatchEmbed,
    PooledResNetEmbed,
    ResNetEmbed,
    TimmEmbed,
)
from vit_plugin.models.layers.std_conv import standardize
from vit_plugin.models.stems import Stem, build_stem

# By name, the class of a stem and its arguments, for the tests that all stems must pass.
STEMS = {
    'patch': (PatchEmbed, dict(patch_size=8)),
    'patch_norm_act': (
        PatchEmbed,
        dict(patch_size=4, norm_cfg=dict(type='LN'), act_cfg=dict(type='ReLU')),
    ),
    'flexi': (FlexiPatchEmbed, dict(patch_size=6, kernel_size=8)),
    'resnet': (ResNetEmbed, dict(stage_depths=(1, 2), width=32)),
    'resnet_root_only': (ResNetEmbed, dict(stage_depths=(), width=32, patch_size=2)),
    'resnet_small': (ResNetEmbed, dict(stage_depths=(1,), width=32, root_stride=1, patch_size=2)),
    'resnet_stride_2': (ResNetEmbed, dict(stage_depths=(1, 1), width=32, root_stride=2)),
    'resnet_with_root': (ResNetEmbed, dict(stage_depths=(1, 1), width=32, with_root=True)),
    'resnet_root_only_with_root': (ResNetEmbed, dict(stage_depths=(), width=32, with_root=True)),
    'resnet_transunet': (
        ResNetEmbed,
        dict(stage_depths=(1, 1, 1), width=32, numerics='transunet', with_root=True),
    ),
    'pooled': (PooledResNetEmbed, dict(channels=(32, 64, 96))),
    'pooled_with_root': (PooledResNetEmbed, dict(channels=(32, 64, 96), with_root=True)),
    'pooled_channels_last': (PooledResNetEmbed, dict(channels=(32, 64, 96), channels_last=True)),
    'pooled_whitened': (PooledResNetEmbed, dict(channels=(24, 32, 64), skip=False, whitened=True)),
    'conv': (ConvEmbed, dict(channels=(4, 8, 16), strides=(4, 2, 1))),
    'conv_overlapping': (
        ConvEmbed,
        dict(channels=(4, 8, 16), strides=(2, 2, 1), kernel_sizes=(3, 3, 1)),
    ),
    'conv_projected': (ConvEmbed, dict(channels=(4,), strides=(3,), patch_size=2, projection=True)),
    'mbconv': (MBConvEmbed, dict(channels=(4, 8), stage_depths=(1, 2))),
    'mbconv_with_root': (MBConvEmbed, dict(channels=(4, 8), stage_depths=(1, 2), with_root=True)),
    'timm': (TimmEmbed, dict(model_name='test_resnet')),
    'timm_efficientnet': (TimmEmbed, dict(model_name='test_efficientnet')),
    'timm_convnext': (
        TimmEmbed,
        dict(model_name='test_convnext', out_indices=(1, 0), patch_size=2),
    ),
}


def build(name: str, **changes: Any) -> Stem:
    stem_class, arguments = STEMS[name]
    return stem_class(in_channels=3, embed_dims=16, **{**arguments, **changes})


@pytest.fixture(scope='module', params=STEMS)
def stem(request):
    return build(request.param).eval()


@settings(max_examples=12)
@given(height=st.integers(32, 75), width=st.integers(32, 75))
def test_grid_and_maps_cover_the_image(stem, height, width):
    with torch.no_grad():
        tokens, grid, features = stem(torch.randn(1, 3, height, width))
    assert grid == stem.grid((height, width))
    for side, cells in zip((height, width), grid, strict=True):
        assert (cells - 1) * stem.stride < side <= cells * stem.stride
    assert tokens.shape == (1, grid[0] * grid[1], stem.embed_dims)
    assert tuple(feature.shape[1] for feature in features) == stem.feature_channels
    for feature, stride in zip(features, stem.feature_strides, strict=True):
        assert feature.shape[-2] >= math.ceil(height / stride)
        assert feature.shape[-1] >= math.ceil(width / stride)


@pytest.mark.parametrize(
    ('stem_class', 'kwargs', 'strides', 'channels'),
    [
        (ResNetEmbed, dict(stage_depths=(1, 1), width=32), (2, 4, 8), (32, 128, 256)),
        (ResNetEmbed, dict(stage_depths=(), width=32), (2, 4), (32, 32)),
        (ResNetEmbed, dict(stage_depths=(1,), width=32, root_stride=1), (1, 1), (32, 128)),
        (PooledResNetEmbed, dict(channels=(32, 64, 96)), (1, 2, 4), (32, 64, 96)),
        (MBConvEmbed, dict(channels=(4, 8), stage_depths=(1, 2)), (2, 4, 8, 16), (4, 4, 8, 16)),
    ],
)
def test_with_root_puts_the_map_of_the_root_first(stem_class, kwargs, strides, channels):
    with_root, plain = (
        stem_class(3, 16, **kwargs, with_root=flag).eval() for flag in (True, False)
    )
    plain.load_state_dict(with_root.state_dict())
    assert (with_root.feature_strides, with_root.feature_channels) == (strides, channels)
    assert (plain.feature_strides, plain.feature_channels) == (strides[1:], channels[1:])
    images = torch.randn(1, 3, 48, 80)
    with torch.no_grad():
        tokens, _, (root, *maps) = with_root(images)
        plain_tokens, _, plain_maps = plain(images)
    assert root.shape == (1, channels[0], 48 // strides[0], 80 // strides[0])
    assert torch.equal(tokens, plain_tokens)
    assert len(maps) == len(plain_maps)
    assert all(map(torch.equal, maps, plain_maps))


def test_depth_grows_from_the_image_to_the_tokens(stem):
    depths = {name: stem.layer_depth(name) for name, _ in stem.named_parameters()}
    assert set(depths.values()) == set(range(stem.num_depths))
    assert depths.get('proj.weight', stem.num_depths - 1) == stem.num_depths - 1
    cnn_depths = [depth for name, depth in depths.items() if name.startswith('backbone')]
    assert cnn_depths == sorted(cnn_depths)


def test_every_parameter_learns(stem):
    stem(torch.randn(2, 3, 64, 64))[0].square().sum().backward()
    assert_all_learn(stem)


def test_plain_patches_are_a_linear_layer():
    stem = PatchEmbed(3, 16, patch_size=4)
    images = torch.randn(1, 3, 8, 12)
    tokens, grid, features = stem(images)
    assert (grid, features) == ((2, 3), ())
    patch = images[0, :, 4:8, 8:12]
    torch.testing.assert_close(
        tokens[0, -1], stem.proj.weight.flatten(1) @ patch.flatten() + stem.proj.bias
    )


def test_norm_and_activation_follow_the_projection():
    tokens, _, _ = build('patch_norm_act')(torch.randn(2, 3, 8, 8))
    assert (tokens >= 0).all()
    assert (tokens == 0).any()


@pytest.mark.parametrize('kind', ['PatchEmbed', 'vit_plugin.PatchEmbed', PatchEmbed])
def test_a_config_with_the_type_of_the_arch_changes_its_stem(kind):
    default = dict(type='PatchEmbed', patch_size=32)
    stem = build_stem(default, dict(type=kind, in_channels=1), embed_dims=8)
    assert (stem.patch_size, stem.in_channels) == (32, 1)


def test_fewer_groups_allow_a_narrow_resnet():
    numerics = dict(stem_norm_cfg=dict(num_groups=8))
    tokens, _, _ = ResNetEmbed(3, 16, stage_depths=(1,), width=8, numerics=numerics)(
        torch.randn(1, 3, 32, 32)
    )
    assert tokens.shape == (1, 64, 16)


def test_weights_of_a_cnn_that_cannot_be_downloaded_raise(monkeypatch):
    def fail(*args, **kwargs):
        raise ConnectionError('no route to host')

    monkeypatch.setattr('timm.create_model', fail)
    with rejects('weights of timm://test_resnet cannot be downloaded .no route to host.; check'):
        TimmEmbed('test_resnet', 3, 16, pretrained=True)


def test_the_name_of_a_timm_cnn_may_have_the_prefix_of_timm():
    assert TimmEmbed('timm://test_resnet', 3, 16).feature_strides


@pytest.mark.parametrize('name', ['patch', 'resnet', 'timm'])
def test_gray_images_are_repeated_over_the_channels(name):
    """A stem repeats a gray image, instead of summing its kernel over the input channels.

    With standardized weights, which are normalized over these channels, the sum would differ.
    """
    stem, gray = build(name).eval(), torch.randn(2, 1, 32, 32)
    torch.testing.assert_close(stem(gray)[0], stem(gray.repeat(1, 3, 1, 1))[0])


@pytest.mark.parametrize('shape', [(1, 2, 32, 32), (3, 32, 32)])
def test_images_of_another_shape_raise(shape):
    with rejects(r'the backbone takes \(B, 3, H, W\)'):
        build('patch')(torch.randn(shape))


@pytest.mark.parametrize(
    ('size', 'grid'), [((32, 32), (4, 4)), ((39, 33), (4, 4)), ((15, 8), (1, 1))]
)
def test_padding_valid_crops_incomplete_patches(size, grid):
    stem, images = PatchEmbed(3, 16, 8, padding='valid'), torch.randn(1, 3, *size)
    assert stem.grid(size) == stem(images)[1] == grid
    torch.testing.assert_close(stem(images)[0], stem(images[..., : 8 * grid[0], : 8 * grid[1]])[0])


@pytest.mark.filterwarnings('ignore:There is a performance drop')  # of vmap over the max-pool
def test_per_sample_gradients_of_a_cnn():
    stem, images = build('resnet'), torch.randn(2, 3, 32, 32)
    weights = {name: parameter.detach() for name, parameter in stem.named_parameters()}

    def loss(weights, image):
        return torch.func.functional_call(stem, weights, (image[None],))[0].square().sum()

    grads = torch.func.vmap(torch.func.grad(loss), (None, 0))(weights, images)
    for i, image in enumerate(images):
        for name, grad in torch.func.grad(loss)(weights, image).items():
            torch.testing.assert_close(grads[name][i], grad, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize('name', ['conv', 'mbconv', 'pooled'])
def test_activation_checkpointing_changes_no_gradient(name):
    plain, recomputing = build(name), build(name, with_cp=True)
    recomputing.load_state_dict(plain.state_dict())
    images = torch.randn(2, 3, 48, 40)
    for stem in (plain, recomputing):
        stem.train()(images)[0].square().sum().backward()
    pairs = zip(plain.named_parameters(), recomputing.parameters(), strict=True)
    for (parameter_name, expected), recomputed in pairs:
        torch.testing.assert_close(recomputed.grad, expected.grad, msg=parameter_name)


def test_a_pooled_stage_equals_its_formula():
    stem = PooledResNetEmbed(
        3, 16, channels=(8, 16), numerics=dict(stem_norm_cfg=dict(num_groups=4))
    )
    stage, x = stem.backbone[1], torch.randn(2, 8, 6, 4)
    nn.init.normal_(stage.norm1.weight)
    convolved = F.conv2d(x, standardize(stage.conv1.weight), padding=1)  # (2, 16, 6, 4)
    pooled = convolved.unflatten(2, (3, 2)).unflatten(4, (2, 2)).amax((3, 5))
    pooled = F.gelu(F.group_norm(pooled, 4, stage.norm1.weight, eps=1e-6), approximate='tanh')
    residual = F.group_norm(
        F.conv2d(pooled, standardize(stage.conv2.weight), padding=1), 4, eps=1e-6
    )
    torch.testing.assert_close(stage(x), pooled + F.gelu(residual, approximate='tanh'))


def test_channels_last_changes_only_the_memory_format():
    plain, last = (
        PooledResNetEmbed(
            3,
            16,
            channels=(8, 16, 24),
            channels_last=last,
            numerics=dict(stem_norm_cfg=dict(type='BN')),
        )
        for last in (False, True)
    )
    last.load_state_dict(plain.state_dict())
    images = torch.randn(2, 3, 8, 8)
    plain_tokens, grid, plain_maps = plain(images)
    last_tokens, _, last_maps = last(images)
    assert grid == (2, 2)
    torch.testing.assert_close(plain_tokens, last_tokens)
    for plain_map, last_map in zip(plain_maps, last_maps, strict=True):
        assert not plain_map.is_contiguous(memory_format=torch.channels_last)
        assert last_map.is_contiguous(memory_format=torch.channels_last)


def test_a_whitened_root_gives_uncorrelated_maps_without_parameters():
    stem = PooledResNetEmbed(
        3, 16, channels=(24, 32), numerics=dict(stem_norm_cfg=dict(type='BN')), whitened=True
    )
    root = stem.backbone[0]
    assert not list(root.parameters())
    root.filters.fill_(torch.nan)  # `to_empty` may leave any value
    root.reset_parameters()
    filters = root.filters.flatten(1)  # (12, 3 * 2 * 2)
    torch.testing.assert_close(filters @ filters.T, torch.eye(12))
    root.act = nn.Identity()  # the linear maps are compared
    images = torch.randn(50, 5, 34, 34)
    for axis in (1, 2, 3):  # a moving sum makes neighbors similar, as in photographs
        images = sum(images.unfold(axis, 3, 1).unbind(-1))
    maps = root(images)
    assert maps.shape == (50, 24, 32, 32)
    torch.testing.assert_close(maps[:, 12:], -maps[:, :12])
    patches = images.unfold(2, 2, 1).unfold(3, 2, 1).transpose(0, 1)  # (3, 50, 31, 31, 2, 2)
    # The 12 values of a patch of 2 x 2 pixels are correlated, and the 12 maps of them are not.
    values = patches.movedim((4, 5), (1, 2)).flatten(3).flatten(0, 2)  # (12, 50 * 31 * 31)
    outputs = maps[:, :12, :-1, :-1].transpose(0, 1).flatten(1)  # without patches at the border
    assert torch.corrcoef(values).min() > 0.1
    assert (torch.corrcoef(outputs) - torch.eye(12)).abs().mean() < 0.05
    torch.testing.assert_close(maps.var((0, 2, 3)), torch.ones(24), rtol=0, atol=0.1)


def test_pooled_stages_without_skip_start_with_dirac_kernels():
    """The first convolution passes its input channels on, scaled by the standardization."""
    stem = PooledResNetEmbed(
        3, 16, channels=(8, 16), numerics=dict(stem_norm_cfg=dict(type='BN')), skip=False
    )
    stage, x = stem.backbone[1], torch.randn(2, 8, 6, 4)
    # A Dirac kernel of 8 * 9 elements has a deviation of 0.12, so the 1 becomes about 8.
    center = standardize(stage.conv1.weight)[:8, :, 1, 1]
    assert center.diagonal().min() > 5
    assert (center - center.diagonal().diag()).abs().max() < 0.2
    first = stage.act(stage.norm1(F.max_pool2d(stage.conv1(x), 2, ceil_mode=True)))
    torch.testing.assert_close(stage(x), stage.act(stage.norm2(stage.conv2(first))))


@pytest.mark.parametrize(
    ('create_stem', 'words'),
    [
        (
            lambda: PooledResNetEmbed(3, 16, channels=(32, 64), whitened=True),
            '24 channels, and channels begins with 32',
        ),
        (lambda: ResNetEmbed(3, 16, root_stride=3), 'root_stride=3 must be 4, 2 or 1'),
        (
            lambda: ResNetEmbed(3, 16, width=48),
            r'num_channels \(48\) must be divisible by num_gr',
        ),
        (lambda: TimmEmbed('resnet51', 3, 16), "model_name='resnet51'.*similar names are .*resnet"),
        (
            lambda: ConvEmbed(3, 16, channels=(4, 8), strides=(4, 2)),
            'without a projection the last map must be 16 chan',
        ),
        (
            lambda: ConvEmbed(3, 16, channels=(4, 16), strides=(4,)),
            'channels has 2 values, strides has 1',
        ),
        (
            lambda: PooledResNetEmbed(3, 16, channels=(32, 48)),
            r'num_channels \(48\) must be divisible',
        ),
        (lambda: PooledResNetEmbed(3, 16, channels=(32,)), 'channels=.* must have at'),
        (
            lambda: ConvEmbed(3, 16, channels=(16,), strides=(3,), kernel_sizes=(2,)),
            'do not fit strides',
        ),
        (lambda: MBConvEmbed(3, 16, channels=(4, 8, 16)), 'channels=.* must have at'),
        (
            lambda: MBConvEmbed(3, 16, patch_size=2),
            'with patch_size=1, but it has 16 with patch_size=2',
        ),
    ],
)
def test_invalid_arguments_of_stems_raise(create_stem, words):
    with rejects(words):
        create_stem()
