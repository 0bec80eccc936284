"""Presets of numerics, their changes in a config, and the layers that are built from them."""

import pytest
from rejection import rejects
from torch import nn

from vit_plugin.models import VisionTransformer
from vit_plugin.models.layers.numerics import (
    NUMERICS,
    build_activation,
    build_map_norm,
    build_norm,
    get_numerics,
)


def test_details_are_merged_into_the_base():
    numerics = get_numerics(dict(base='timm', norm_cfg=dict(eps=1e-5)))
    assert numerics.norm_cfg == dict(type='LN', eps=1e-5)
    assert numerics.act_cfg == NUMERICS['timm'].act_cfg
    assert NUMERICS['timm'].norm_cfg['eps'] == 1e-6


def test_another_type_replaces_the_bases_entry():
    assert get_numerics(dict(act_cfg=dict(type='ReLU'))).act_cfg == dict(type='ReLU')


def test_details_of_the_shortcuts_change_the_norms_of_the_stem():
    numerics = get_numerics(dict(stem_shortcut_norm_cfg=dict(eps=1e-5)))
    assert numerics.stem_shortcut_norm_cfg == dict(type='GN', num_groups=32, eps=1e-5)
    assert get_numerics('authors').stem_shortcut_norm_cfg == {}


def test_numerics_reach_the_layers(tiny_hybrid):
    for name, approximate, eps in (('authors', 'tanh', 1e-6), ('timm', 'none', 1e-5)):
        model = VisionTransformer(**tiny_hybrid, numerics=name)
        stem = model.patch_embed.backbone.stem
        assert model.blocks[0].mlp.act.approximate == approximate
        assert (stem.norm.eps, stem.conv.eps_inside_root) == (eps, name == 'timm')
    model = VisionTransformer(**tiny_hybrid, numerics=dict(norm_cfg=dict(eps=1e-3)))
    assert {model.norm.eps, model.blocks[0].norm1.eps, model.blocks[1].norm2.eps} == {1e-3}


def test_layers_are_built_by_name_and_by_class():
    assert isinstance(build_map_norm(dict(type='GN', num_groups=4), 8), nn.GroupNorm)
    assert isinstance(build_norm(dict(type=nn.LayerNorm), 8), nn.LayerNorm)
    assert build_activation(dict(type='GELU', approximate='tanh')).approximate == 'tanh'


@pytest.mark.parametrize(
    ('call', 'words'),
    [
        (
            lambda: build_norm(dict(type='BN'), 8),
            "norm_cfg of tokens: type='BN' is not one of LN, RMSN",
        ),
        (
            lambda: build_norm(dict(type=nn.BatchNorm2d), 8),
            'norm_cfg of tokens: type=.* is not one of LN, RMSN',
        ),
        (
            lambda: build_map_norm(dict(type='LN'), 8),
            "norm_cfg of maps: type='LN' is not one of LN2d, BN",
        ),
        (lambda: build_activation(dict(type='Gelu')), "act_cfg: type='Gelu' is not one of GELU"),
    ],
)
def test_unsupported_layers_raise(call, words):
    with rejects(words):
        call()
