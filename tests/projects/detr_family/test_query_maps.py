"""Backbone outputs and neck for a decoder of queries, on a CNN and on a plain ViT."""

import pytest
from tiny_models import TINY_SIZES, model_facts

from vit_plugin.projects.detr_family.query_maps import query_maps

TIMM = dict(type='vit_plugin.TimmBackbone')
PLAIN = dict(TINY_SIZES, num_layers=4, patch_size=16)


@pytest.mark.parametrize(
    ('name', 'strides', 'neck'),
    [
        ('resnet10t', [8, 16, 32], 'FPN'),
        ('test_efficientnet', [8, 16, 32], 'FPN'),
    ],
)
def test_cnn_gives_its_last_three_maps(name, strides, neck):
    facts = model_facts(dict(TIMM, model_name=name), (128, 128))
    backbone, fpn, map_strides = query_maps(facts, 96)
    assert (map_strides, fpn['type'], fpn['num_outs']) == (strides, neck, 3)
    assert backbone == dict(TIMM, model_name=name, out_type='pyramid')
    assert facts.meta_backbone.strides[fpn['start_level']] == strides[0]


def test_vit_gives_one_map_of_four_depths():
    facts = model_facts(dict(arch=PLAIN), (128, 128))
    backbone, neck, strides = query_maps(facts, 96, dict(type='LN2d'))
    assert (strides, backbone['out_indices']) == ([16], (0, 1, 2, 3))
    assert neck == dict(
        type='vit_plugin.C2fProjector',
        in_channels=[32] * 4,
        out_channels=96,
        norm_cfg=dict(type='LN2d'),
    )
