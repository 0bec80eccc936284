"""Recognize weights of another model with equal shapes: by their name, tables and format."""

import pytest
import timm
import torch
from rejection import rejects
from tiny_models import CENTRED, TINY_SIZES

from vit_plugin.models import VisionTransformer, load_weights
from vit_plugin.models.layers import Numerics
from vit_plugin.models.loading.consistency import compare_named_model

DINO = 'timm://vit_base_patch16_224.dino'


def on_meta(arch: str | dict, **changes) -> VisionTransformer:
    with torch.device('meta'):
        return VisionTransformer(arch=arch, **changes)


@pytest.fixture(scope='module')
def dino() -> VisionTransformer:
    return on_meta(DINO)


@pytest.mark.parametrize(
    'source', [DINO, 'timm://vit_base_patch16_224', 'hf://timm/vit_base_patch16_224.dino']
)
def test_names_of_the_same_model_are_accepted(dino, source):
    assert Numerics(**compare_named_model(dino, source)) == dino.numerics


def test_numerics_of_a_named_clip_are_returned(dino):
    numerics = compare_named_model(dino, 'timm://vit_base_patch16_clip_quickgelu_224.openai')
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
def test_rotary_positions_must_agree_except_for_augmentation(change, words):
    """DINOv3 has the planes 'halves'. ``shift`` only changes training. ``words=''``: accepted."""
    source = 'timm://vit_small_patch16_dinov3'
    backbone = on_meta(
        'S/16', numerics='timm', encoder=dict(reg_token=4, layer_scale_init_value=1e-5), **change
    )
    if words:
        with rejects(words):
            compare_named_model(backbone, source)
    else:  # returns the numerics of DINOv3, whose eps this backbone lacks
        assert compare_named_model(backbone, source)['norm_cfg'] != backbone.numerics.norm_cfg


def test_another_number_of_heads_is_refused():
    arch = dict(embed_dims=768, num_layers=12, num_heads=16, feedforward_channels=3072)
    with rejects("num_heads=12, but this backbone has num_heads=16.*arch='timm://vit_base"):
        compare_named_model(on_meta(arch), DINO)


@pytest.mark.parametrize(
    'source', ['timm://resnet50', 'timm://no_such_name', 'weights.npz', 'hf://google/vit-base']
)
def test_sources_that_timm_does_not_know_are_accepted(dino, source):
    assert compare_named_model(dino, source) == {}


def test_different_numerics_are_noted_once(monkeypatch):
    sizes = dict(embed_dims=192, num_layers=12, num_heads=3, feedforward_channels=768)
    theirs = timm.create_model('vit_tiny_patch16_224', num_classes=0)
    # In place of a download.
    monkeypatch.setattr(
        'vit_plugin.weights.opening.download_timm', lambda source: theirs.state_dict()
    )
    report = load_weights(VisionTransformer(arch=sizes), 'timm://vit_tiny_patch16_224')
    assert sum('act_cfg' in difference for difference in report.numerics) == 1
    report = load_weights(
        VisionTransformer(arch=sizes, numerics='timm'), 'timm://vit_tiny_patch16_224'
    )
    assert not report.numerics
    assert not report.notes


@pytest.mark.parametrize('factor', [1.0, 1.5])
def test_rotary_periods_of_dinov3_are_compared(factor):
    model = VisionTransformer(
        TINY_SIZES | dict(patch_size=16),
        img_size=64,
        pos_embed=CENTRED,
    )
    state = {**model.state_dict(), 'rope_embed.periods': factor * 100 ** (torch.arange(4) / 4)}
    if factor == 1.0:
        assert 'rope_embed.periods' in load_weights(model, state).ignored
    else:
        with rejects('rope_embed.periods: the model computes other'):
            load_weights(model, state)


def test_an_empty_rotary_table_is_refused():
    model = VisionTransformer(TINY_SIZES | dict(patch_size=16), img_size=64, pos_embed=CENTRED)
    with rejects('rope_embed.periods: the model computes other'):
        load_weights(model, {**model.state_dict(), 'rope_embed.periods': torch.empty(0)})
