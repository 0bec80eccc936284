"""DEIMv2's backbone and small neck on any transformer, and the model that `train --data` builds."""

import vit_plugin.detection  # noqa: F401  isort: skip  before mmdet

import pytest
import torch
from model_states import assert_all_learn
from rejection import rejects
from tiny_models import TINY, model_facts

from vit_plugin.models import LiteEncoder, SpatialTuningAdapter, VisionTransformer, load_weights
from vit_plugin.projects.deimv2.deimv2_model import DEIMV2

ARCH = dict(TINY, num_layers=3)


@pytest.mark.parametrize('arch', [ARCH, 'R+Ti/16'])
@pytest.mark.parametrize('size', [(64, 96), (70, 90)])
def test_maps_have_their_strides_and_train_all_weights(arch, size):
    model = SpatialTuningAdapter(
        arch=arch, img_size=64, out_indices=(0, 1, 2), out_channels=16, conv_inplane=4
    )
    maps = model(torch.rand(2, 3, *size))
    expected = [tuple(-(-side // stride) for side in size) for stride in (8, 16, 32)]
    assert [tuple(level.shape) for level in maps] == [(2, 16, *side) for side in expected]
    assert (model.channels, model.strides) == ((16,) * 3, (8, 16, 32))
    sum(level.square().mean() for level in maps).backward()
    assert_all_learn(model)


@pytest.mark.parametrize('arch', ['R+Ti/16', 'test_resnet+Ti/16'])
def test_maps_of_a_hybrid_replace_the_detail_cnn(arch):
    model = SpatialTuningAdapter(
        arch=arch, img_size=64, out_indices=(0, 1, 2), out_channels=16, conv_inplane=None
    )
    maps = model(torch.rand(2, 3, 70, 90))
    assert [tuple(level.shape[2:]) for level in maps] == [(9, 12), (5, 6), (3, 3)]
    assert not len(model.detail)
    sum(level.square().mean() for level in maps).backward()
    assert_all_learn(model)


def test_pure_transformer_without_detail_cnn_raises():
    with rejects(r'conv_inplane=None takes the maps of a CNN .* this stem has \(\)'):
        SpatialTuningAdapter(arch=ARCH, img_size=32, out_indices=(0, 1, 2), conv_inplane=None)


def test_weights_of_an_encoder_load():
    vit = VisionTransformer(ARCH, 32, out_type='featmap')
    model = SpatialTuningAdapter(arch=ARCH, img_size=32, out_indices=(0, 1, 2), out_channels=16)
    report = load_weights(model, vit.state_dict())
    assert all(name.startswith(('detail', 'fusions')) for name in report.initialized)


def test_other_out_type_raises():
    with rejects(r"out_type='raw' must be 'featmap'"):
        SpatialTuningAdapter(arch=ARCH, img_size=32, out_indices=(0, 2), out_type='raw')


def test_fewer_blocks_still_give_three_maps():
    model = SpatialTuningAdapter(arch=ARCH, img_size=32, out_indices=(0, 2), out_channels=16)
    assert [level.shape[-1] for level in model(torch.rand(1, 3, 64, 64))] == [8, 4, 2]


def test_lite_encoder_takes_one_map():
    neck = LiteEncoder([8], 16, depth=0.34, expansion=0.5)
    outs = neck([torch.rand(2, 8, 5, 6)])
    assert [tuple(out.shape) for out in outs] == [(2, 16, 5, 6), (2, 16, 3, 3)]
    with rejects(r'in_channels=\[8, 8\] must be of one map'):
        LiteEncoder([8, 8])


@pytest.mark.parametrize(
    ('arch', 'convolutions'),
    [
        ('Ti/16', 4),
        ('S/16', 4),
        ('R+Ti/16', 0),  # the maps of a hybrid's own CNN
        ('R26+S/32', 0),
        ('test_resnet+Ti/16', 0),
        ('R50+B/16', 0),
    ],
)
def test_model_builds_on_any_backbone(arch, convolutions):
    pytest.importorskip('vit_plugin.projects.d_fine')  # has the neck and the head
    import mmdet.models  # noqa: F401
    from mmengine.registry import MODELS, init_default_scope

    facts = model_facts(dict(arch=arch, img_size=256), (256, 256), objects=4)
    init_default_scope('mmdet')
    with torch.device('meta'):
        model = MODELS.build(dict(DEIMV2.build(facts)))
    assert model.bbox_head.num_classes == 3
    assert model.backbone.strides == (8, 16, 32)
    assert len(model.backbone.detail) == convolutions
