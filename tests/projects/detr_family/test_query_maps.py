"""The maps for a decoder of queries, on backbones of several and of one width."""

import pytest
import torch

from vit_plugin.config.task_model import ModelFacts
from vit_plugin.models import VisionTransformer
from vit_plugin.projects.detr_family.query_maps import query_maps
from vit_plugin.registry import MODELS

TIMM = dict(type='vit_plugin.TimmBackbone')
PLAIN = dict(embed_dims=32, num_layers=4, num_heads=2, feedforward_channels=64, patch_size=16)


def facts(arguments, kind=None):
    def build(**more):
        with torch.device('meta'):
            made = dict(arguments, **more)
            return kind(**made) if kind else MODELS.build(made)

    return ModelFacts(3, (128, 128), arguments, build)


@pytest.mark.parametrize(
    ('name', 'strides', 'neck'),
    [
        ('resnet10t', [8, 16, 32], 'FPN'),
        ('test_efficientnet', [8, 16, 32], 'FPN'),
    ],
)
def test_a_cnn_gives_its_last_three_maps(name, strides, neck):
    of = facts(dict(TIMM, model_name=name))
    backbone, found, given = query_maps(of, 96)
    assert (given, found['type'], found['num_outs']) == (strides, neck, 3)
    assert backbone == dict(TIMM, model_name=name, out_type='pyramid')
    assert of.meta_backbone.strides[found['start_level']] == strides[0]


def test_a_vit_gives_one_map_of_four_depths():
    of = facts(dict(arch=PLAIN), VisionTransformer)
    backbone, neck, strides = query_maps(of, 96, dict(type='LN2d'))
    assert (strides, backbone['out_indices']) == ([16], (0, 1, 2, 3))
    assert neck == dict(
        type='vit_plugin.C2fProjector',
        in_channels=[32] * 4,
        out_channels=96,
        norm_cfg=dict(type='LN2d'),
    )
