"""Names of archs such as 'R50+B/16': their table, their parser, and errors for unknown ones."""

import pytest
import torch
from tiny_models import TINY_SIZES

from vit_plugin.arch import STEMS, VARIANTS, Arch, parse_arch
from vit_plugin.errors import ConfigError
from vit_plugin.models import VisionTransformer, ViTClsHead

# Numbers of parameters at 224 px with 1000 classes and no pre-logits, from the tests of
# google-research/vision_transformer and from timm.
PARAMETERS = {
    'Ti/16': 5_717_416,
    'S/32': 22_878_952,
    'S/16': 22_050_664,
    'B/32': 88_224_232,
    'B/16': 86_567_656,
    'B/8': 86_576_872,
    'L/32': 306_535_400,
    'L/16': 304_326_632,
    'H/14': 632_045_800,
    'g/14': 1_012_611_432,
    'G/14': 1_844_440_680,
    'R+Ti/16': 6_337_704,
    'R26+S/32': 36_431_912,
    'R26+B/32': 101_383_976,
    'R50+B/16': 98_659_112,
    'R50+L/32': 328_994_856,
}


def test_every_variant_has_an_expected_count():
    assert set(VARIANTS) == set(PARAMETERS)


@pytest.mark.parametrize('arch', VARIANTS)
def test_parameter_count(arch):
    with torch.device('meta'):
        backbone = VisionTransformer(arch)
        head = ViTClsHead(1000, backbone.embed_dims)
    count = sum(
        parameter.numel() for module in (backbone, head) for parameter in module.parameters()
    )
    assert count == PARAMETERS[arch]


@pytest.mark.parametrize(
    ('name', 'stride'),
    [
        ('B/16', 16),
        ('b/16', 16),
        ('R50+B/16', 16),
        ('r50+l/32', 32),
        ('R26+S/32', 32),
        ('R+Ti/16', 32),
    ],
)
def test_names_and_strides(name, stride):
    with torch.device('meta'):
        assert VisionTransformer(name).patch_embed.stride == stride


def test_small_and_capital_g_are_different_sizes():
    assert parse_arch('g/14').embed_dims == 1408
    assert parse_arch('G/14').embed_dims == 1664


def test_every_stem_has_an_arch_name():
    for stem, rows in STEMS.items():
        for number in rows:
            assert parse_arch(f'{stem}+S/{number}').patch_embed['type'] == 'ResNetEmbed'


@pytest.mark.parametrize(
    ('arch', 'words'),
    [
        ('B/15', ['B/15', 'B/16', 'patch_size']),
        ('R50+B/8', ['R50+B/16']),
        ('X/16', ['Sizes: Ti, S']),
        ('R99+B/16', ['R50+B/16']),
        ('', ['Unknown arch']),
        ('unknown', ['Unknown arch']),
        ('B/' + 5000 * '1', ['Unknown arch']),
        ('R50+B', ['R50+B/16']),
        ('vit_base_patch16_dinov3', ["arch='timm://vit_base_patch16_dinov3'"]),
        ('hf://facebook/dinov3-vitb16', ['timm://<model>', 'init_cfg']),
        ('test_resnot+Ti/16', ["Unknown arch 'test_resnot+Ti/16'"]),
        (
            'test_resnet+Ti/64',
            ['test_resnet of timm has no feature map of the stride 64; ', ' one of 2, 4, 8, 16,'],
        ),
        (dict(num_layers=2, num_heads=16, feedforward_channels=64), ['needs embed_dims; give it']),
        (dict(TINY_SIZES, depth=3), ['arch takes no depth ', '; it takes embed_dims, ']),
        *(
            (dict(TINY_SIZES, num_heads=heads), [f'arch: num_heads={heads} must be '])
            for heads in (0, -2, 1.5)
        ),
        (dict(TINY_SIZES, num_heads=3), ['embed_dims=32 is not divisible by num_heads=3']),
    ],
)
def test_unknown_arch_raises_with_suggestions(arch, words):
    with pytest.raises(ConfigError) as error:
        parse_arch(arch)
    assert all(word in str(error.value) for word in words)


@pytest.mark.parametrize('place', ['arch', 'resnet'])
def test_the_patch_size_may_be_among_the_arguments_of_the_resnet(place):
    sizes = dict(arch={}, resnet={})
    sizes[place] = dict(patch_size=4)
    arch = parse_arch(dict(TINY_SIZES, **sizes['arch'], resnet=sizes['resnet']))
    assert arch.patch_embed == dict(type='ResNetEmbed', patch_size=4)


def test_a_change_of_the_numerics_keeps_the_preset_of_the_arch():
    arch = Arch(*TINY_SIZES.values(), arguments=dict(numerics='timm'))
    change = dict(norm_cfg=dict(eps=1e-5))
    assert arch.complete(numerics=change).numerics == dict(base='timm', **change)
    assert arch.complete().numerics == 'timm'
    for given in ('authors', dict(base='transunet', **change)):
        assert arch.complete(numerics=given).numerics == given


def test_timm_cnn_name_becomes_a_stem():
    arch = parse_arch('test_resnet+Ti/16')
    assert arch.patch_embed == dict(
        type='TimmEmbed', model_name='test_resnet', out_indices=(0, 1, 2, 3)
    )
    assert arch.embed_dims == 192
