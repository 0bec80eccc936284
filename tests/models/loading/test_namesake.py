"""Weights of another name with the same shapes are told apart."""

import pytest
import timm
import torch

from vit_plugin.errors import ConfigError
from vit_plugin.models import VisionTransformer, load_weights
from vit_plugin.models.layers import Numerics
from vit_plugin.models.loading.namesake import compare

DINO = 'timm://vit_base_patch16_224.dino'


def on_meta(arch, **changes) -> VisionTransformer:
    with torch.device('meta'):
        return VisionTransformer(arch=arch, **changes)


@pytest.fixture(scope='module')
def dino() -> VisionTransformer:
    return on_meta(DINO)


@pytest.mark.parametrize(
    'source', [DINO, 'timm://vit_base_patch16_224', 'hf://timm/vit_base_patch16_224.dino']
)
def test_the_same_structure_and_numerics(dino, source):
    assert Numerics(**compare(dino, source)) == dino.numerics


def test_clips_weights_in_a_dino(dino):
    numerics = compare(dino, 'timm://vit_base_patch16_clip_quickgelu_224.openai')
    assert numerics['act_cfg'] == dict(type='QuickGELU')
    assert numerics['norm_cfg']['eps'] == 1e-5


@pytest.mark.parametrize(
    ('change', 'words'),
    [
        (
            dict(pos_embed=dict(rotary=dict(form='centred'))),
            "planes': 'halves'.*'planes': 'neighbours'",
        ),
        (dict(pos_embed=dict(rotary=dict(form='centred', planes='halves', shift=0.1))), ''),
    ],
)
def test_another_structure_is_refused(change, words):
    source = 'timm://vit_small_patch16_dinov3'
    backbone = on_meta(
        'S/16', numerics='timm', encoder=dict(reg_token=4, layer_scale_init_value=1e-5), **change
    )
    if words:
        with pytest.raises(ConfigError, match=words):
            compare(backbone, source)
    else:  # what only training changes may differ
        assert compare(backbone, source)['norm_cfg'] != backbone.numerics.norm_cfg


def test_other_heads_are_refused():
    arch = dict(embed_dims=768, num_layers=12, num_heads=16, feedforward_channels=3072)
    with pytest.raises(
        ConfigError, match="num_heads=12, and this backbone has num_heads=16.*arch='timm://vit_base"
    ):
        compare(on_meta(arch), DINO)


@pytest.mark.parametrize(
    'source', ['timm://resnet50', 'timm://no_such_name', 'weights.npz', 'hf://google/vit-base']
)
def test_of_other_sources_nothing_is_known(dino, source):
    assert compare(dino, source) == {}


def test_the_report_says_it_once(monkeypatch):
    sizes = dict(embed_dims=192, num_layers=12, num_heads=3, feedforward_channels=768)
    theirs = timm.create_model('vit_tiny_patch16_224', num_classes=0)
    monkeypatch.setattr(
        'vit_plugin.models.loading.checkpoint.open_weights', lambda source: theirs.state_dict()
    )
    report = load_weights(VisionTransformer(arch=sizes), 'timm://vit_tiny_patch16_224')
    assert sum('act_cfg' in note for note in report.notes) == 1
    report = load_weights(
        VisionTransformer(arch=sizes, numerics='timm'), 'timm://vit_tiny_patch16_224'
    )
    assert not report.notes
