"""ECDet's backbone on any transformer, its variants, and the model that `train --data` builds."""

import vit_plugin.detection  # noqa: F401  isort: skip  before mmdet

import pytest
import torch
from model_states import assert_all_learn
from rejection import rejects
from tiny_models import TINY, model_facts

from vit_plugin.arch import parse_arch
from vit_plugin.models import ECViT, VisionTransformer, load_weights
from vit_plugin.projects.ecdet.ecdet_model import ECDET

# Numbers of parameters of the transformers without projections, from the authors' code.
PARAMETERS = {
    'ECViT-T': 5_557_464,
    'ECViT-T+': 9_866_016,
    'ECViT-S': 22_167_216,
    'ECViT-S+': 29_254_320,
}


@pytest.mark.parametrize('arch', PARAMETERS)
def test_variants_have_the_published_sizes(arch):
    with torch.device('meta'):
        model = VisionTransformer(arch)
    assert sum(parameter.numel() for parameter in model.parameters()) == PARAMETERS[arch]
    assert model.patch_embed.feature_strides == (2, 4, 8, 16)
    assert parse_arch(arch.lower()) == parse_arch(arch)


def test_unknown_variant_raises_with_suggestions():
    with rejects('nearest are .*ECViT-T'):
        parse_arch('ECViT-Ti')


@pytest.mark.parametrize('arch', [TINY, 'R+Ti/16'])
@pytest.mark.parametrize('size', [(64, 96), (70, 90)])
def test_maps_have_their_strides_and_train_all_weights(arch, size):
    model = ECViT(arch, img_size=64, out_channels=16)
    maps = model(torch.rand(2, 3, *size))
    expected = [tuple(-(-side // stride) for side in size) for stride in (8, 16, 32)]
    assert [tuple(level.shape) for level in maps] == [(2, 16, *side) for side in expected]
    assert (model.channels, model.strides) == ((16,) * 3, (8, 16, 32))
    sum(level.square().mean() for level in maps).backward()
    assert_all_learn(model)


def test_only_the_coarsest_map_is_projected_to_the_same_width():
    model = ECViT(TINY, img_size=64)
    fine, middle, _ = model.eval()(images := torch.rand(1, 3, 64, 64))
    tokens = torch.stack(VisionTransformer.forward(model, images)).mean(0)  # stride 8
    assert len([*model.projections.parameters()]) == 3  # a weight, and two of its norm
    assert model.channels == (TINY['embed_dims'],) * 3
    # Halving averages each 2 x 2 elements, so the mean stays.
    torch.testing.assert_close(middle.mean(), tokens.mean())
    assert fine.shape[-1] == 2 * middle.shape[-1]


def test_pretrained_cnn_replaces_the_convolutions(tmp_path):
    import timm

    cnn = timm.create_model('test_resnet', features_only=True)
    torch.save(cnn.state_dict(), tmp_path / 'cnn.pth')
    stem = dict(
        type='TimmEmbed',
        model_name='test_resnet',
        init_cfg=dict(type='Pretrained', checkpoint=str(tmp_path / 'cnn.pth')),
    )
    model = ECViT('ECViT-T', patch_embed=stem, out_indices=(0, 1))
    model.init_weights()
    expected = next(iter(cnn.parameters()))
    assert any(torch.equal(expected, parameter) for parameter in model.patch_embed.parameters())
    assert [level.shape[-1] for level in model(torch.rand(1, 3, 64, 64))] == [8, 4, 2]


def test_weights_of_an_encoder_load():
    vit = VisionTransformer(TINY, 32, out_type='featmap')
    report = load_weights(ECViT(TINY, img_size=32), vit.state_dict())
    assert all(name.startswith('projections') for name in report.initialized)


def test_other_out_type_raises():
    with rejects("out_type='raw' must be 'featmap'"):
        ECViT(TINY, img_size=32, out_type='raw')


@pytest.mark.parametrize('arch', ['ECViT-T', 'S/16', 'R+Ti/16'])
def test_model_builds_on_any_backbone(arch):
    pytest.importorskip('vit_plugin.projects.d_fine')  # has the neck and the head
    import mmdet.models  # noqa: F401
    from mmengine.registry import MODELS, init_default_scope

    arguments = dict(arch=arch, img_size=640)
    facts = model_facts(arguments, (640, 640), windows=True, objects=4)
    init_default_scope('mmdet')
    with torch.device('meta'):
        model = MODELS.build(dict(ECDET.build(facts)))
    assert model.bbox_head.num_classes == 3
    assert model.backbone.strides == (8, 16, 32)
    assert not model.bbox_head.variant.position_follows_boxes
