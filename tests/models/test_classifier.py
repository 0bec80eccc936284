"""``vit_plugin.create_model``: a plain module that equals timm's and MMPretrain's models."""

import numpy as np
import pytest
import timm
import torch
from mmengine.registry import MODELS, DefaultScope
from PIL import Image
from rejection import rejects
from timm.data import create_transform, resolve_model_data_config

import vit_plugin


@pytest.mark.parametrize('name', ['test_vit', 'test_vit3'])
def test_names_of_timm_give_timms_outputs_and_data_config(name):
    theirs = timm.create_model(name, pretrained=False).eval()
    ours = vit_plugin.create_model(f'timm://{name}', pretrained=theirs.state_dict()).eval()
    images = torch.randn(2, 3, *theirs.patch_embed.img_size)
    with torch.no_grad():
        torch.testing.assert_close(ours(images), theirs(images), atol=1e-5, rtol=1e-4)
    assert ours.data_config == resolve_model_data_config(theirs)
    photo = Image.fromarray(
        np.random.default_rng(0).integers(0, 256, (190, 230, 3), dtype=np.uint8)
    )
    torch.testing.assert_close(
        create_transform(**ours.data_config)(photo),
        create_transform(**resolve_model_data_config(theirs))(photo),
    )


def test_weights_load_into_mmpretrain_and_back(tiny):
    ours = vit_plugin.create_model(**tiny, num_classes=5)
    torch.nn.init.normal_(ours.head.layers.head.weight)
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        theirs = MODELS.build(
            dict(
                type='ImageClassifier',
                backbone=dict(type='vit_plugin.VisionTransformer', **tiny),
                head=dict(type='vit_plugin.ViTClsHead', num_classes=5, in_channels=32),
            )
        )
    theirs.load_state_dict(ours.state_dict())
    reloaded = vit_plugin.create_model(**tiny, num_classes=5, pretrained=theirs.state_dict())
    images = torch.randn(2, 3, 32, 32)
    for model in (ours, theirs, reloaded):
        model.eval()
    torch.testing.assert_close(theirs(images), ours(images), atol=0, rtol=0)
    torch.testing.assert_close(reloaded(images), ours(images), atol=0, rtol=0)
    assert set(reloaded.report.matched) == {
        name.removeprefix('backbone.') for name in ours.state_dict()
    } - {'position._extra_state'}


def test_a_classifier_starts_at_zero_and_learns(tiny):
    model = vit_plugin.create_model(**tiny, num_classes=3)
    images, labels = torch.randn(6, 3, 32, 32), torch.arange(6) % 3
    assert not model(images).any()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(10):
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]


def test_a_model_without_classes_returns_features(tiny):
    model = vit_plugin.create_model(
        **tiny, num_classes=0, patch_embed=dict(in_channels=1), out_type='avg_featmap'
    )
    images = torch.randn(2, 1, 32, 32)
    assert model(images).shape == (2, 32)
    torch.testing.assert_close(model(images), model.backbone(images)[-1])
    assert model.data_config == dict(
        input_size=(1, 32, 32),
        interpolation='bilinear',
        mean=(0.5,),
        std=(0.5,),
        crop_pct=1.0,
        crop_mode='squash',
    )


def test_data_config_comes_from_the_checkpoint(tiny, tmp_path):
    tiny = {name: value for name, value in tiny.items() if name != 'img_size'}
    model = vit_plugin.create_model(**tiny, num_classes=3, img_size=48)
    text = (
        'model = dict(backbone=dict(img_size=48))\ndata_preprocessor = dict(mean=[51.0], '
        'std=[25.5])\n'
    )
    torch.save(dict(meta=dict(cfg=text), state_dict=model.state_dict()), tmp_path / 'epoch_1.pth')
    data_config = vit_plugin.create_model(
        **tiny, num_classes=3, pretrained=tmp_path / 'epoch_1.pth'
    ).data_config
    assert data_config['input_size'] == (3, 48, 48)
    # The means and deviations above, divided by 255.
    assert data_config['mean'] == (0.2,) * 3
    assert data_config['std'] == (0.1,) * 3


@pytest.mark.parametrize(
    ('arguments', 'words'),
    [
        (dict(arch='B/17'), "Unknown arch 'B/17'"),
        (dict(num_classes=-1), 'num_classes=-1 must be an integer from 0'),
        (dict(arch='S/16', pretrained=True), "this is arch='S/16'; give a path"),
        (
            dict(arch='S/16', pretrained=''),
            "pretrained='' must be a path, an address, tensors by name or True",
        ),
        (dict(arch='S/16', pretrained={}), 'pretrained={} must be'),
        (dict(arch='S/16', pretrained=0), 'pretrained=0 must be'),
        (dict(arch=None), 'arch=None must be a name such as'),
        (dict(arch=5), 'arch=5 must be a name such as'),
        (
            dict(type='x'),
            "type is always the backbone 'vit_plugin.VisionTransformer'; leave it out",
        ),
        (dict(out_type='featmap'), "out_type='featmap' returns no vector for an image"),
        (dict(init_cfg=None), 'init_cfg is for the runner'),
        (dict(arch='S/16', pretrained='none.npz'), "There is no checkpoint file 'none.npz'"),
    ],
)
def test_invalid_arguments_raise(arguments, words):
    with rejects(words):
        vit_plugin.create_model(**{'arch': 'Ti/16', **arguments})
