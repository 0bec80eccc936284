"""Backbone outputs and neck for a decoder of queries, on a CNN and on a plain ViT."""

import pytest
from tiny_models import TINY_SIZES, model_facts

from vit_plugin.projects.detr_family.query_maps import query_maps

TIMM = dict(type='vit_plugin.TimmBackbone')
PLAIN = dict(TINY_SIZES, num_layers=4)


@pytest.mark.parametrize('name', ['resnet10t', 'test_efficientnet'])
def test_cnn_gives_its_last_three_maps(name):
    pytest.importorskip('vit_plugin.projects.timm_models')  # has TimmBackbone
    facts = model_facts(dict(TIMM, model_name=name), (128, 128))
    backbone, neck, strides = query_maps(facts, 96)
    assert (strides, neck['type'], neck['num_outs']) == ([8, 16, 32], 'FPN', 3)
    assert backbone == dict(TIMM, model_name=name, out_type='pyramid')
    assert facts.meta_backbone.strides[neck['start_level']] == 8


@pytest.mark.parametrize('patch_size', [16, 2])
def test_vit_gives_one_map_of_four_depths(patch_size):
    facts = model_facts(dict(arch=dict(PLAIN, patch_size=patch_size)), (128, 128))
    backbone, neck, strides = query_maps(facts, 96, dict(type='LN2d'))
    assert (strides, backbone['out_indices']) == ([patch_size], (0, 1, 2, 3))
    assert neck == dict(
        type='vit_plugin.C2fProjector',
        in_channels=[32] * 4,
        out_channels=96,
        norm_cfg=dict(type='LN2d'),
    )
