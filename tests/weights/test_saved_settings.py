"""Read the settings of its training from a checkpoint."""

import io

import pytest
import torch
from mmengine.config import Config
from rejection import rejects

from benchmarks.rude_server import serving
from vit_plugin.weights import Checkpoint, open_checkpoint
from vit_plugin.weights.saved_settings import (
    literals,
    saved_backbone,
    saved_neck,
    training_settings,
)
from vit_plugin.weights.wrapped_model import wrapped_model

PIXELS = dict(mean=[123.675, 116.28, 103.53], std=[51.0, 51.0, 25.5])
UNIT_PIXELS = dict(mean=tuple(value / 255 for value in PIXELS['mean']), std=(0.2, 0.2, 0.1))
SIZED = dict(backbone=dict(img_size=32))


@pytest.mark.parametrize(
    ('settings', 'expected'),
    [
        (dict(model=SIZED, data_preprocessor=PIXELS), dict(UNIT_PIXELS, img_size=32)),
        (
            dict(model=dict(backbone=dict(img_size=(32, 48)), data_preprocessor=PIXELS)),
            dict(UNIT_PIXELS, img_size=(32, 48)),
        ),
        (
            dict(
                model=dict(type='ImageClassifier'), data_preprocessor=dict(mean=[0.0], std=[255.0])
            ),
            dict(mean=(0.0,), std=(1.0,)),
        ),
        (
            dict(
                model={'backbone': dict(img_size='32'), 'not a name': 1},
                data_preprocessor=dict(mean='0', std=[0.0]),
            ),
            {},
        ),
    ],
)
def test_size_and_normalization_come_from_the_config(tmp_path, settings, expected):
    path = tmp_path / 'epoch_1.pth'
    torch.save(dict(meta=dict(cfg=Config(settings).pretty_text), state_dict={}), path)
    assert training_settings(path) == training_settings(str(path)) == expected


@pytest.mark.parametrize(
    'content',
    [
        {},
        dict(meta=None),
        dict(meta=dict(cfg=3)),
        dict(meta=dict(cfg='no config')),
        dict(meta=dict(cfg='model = dict(backbone=open("ran", "w"))\nopen("ran", "w")')),
        dict(meta=dict(cfg='model = dict(**{})\nmodel = {[]: 1}')),
    ],
)
def test_unreadable_configs_are_ignored_and_not_executed(tmp_path, monkeypatch, content):
    monkeypatch.chdir(tmp_path)
    torch.save(content, 'epoch_1.pth')
    assert training_settings('epoch_1.pth') == {}
    assert not (tmp_path / 'ran').exists()


def test_addresses_are_read_and_names_in_hubs_are_not(tmp_path, monkeypatch):
    monkeypatch.setenv('NO_PROXY', '*')
    monkeypatch.setattr(torch.hub, 'get_dir', lambda: str(tmp_path))
    file = io.BytesIO()
    torch.save(
        dict(
            meta=dict(cfg=Config(dict(model=SIZED, data_preprocessor=PIXELS)).pretty_text),
            state_dict=dict(weight=torch.ones(2)),
        ),
        file,
    )
    with serving(file.getvalue()) as server:
        address = f'{server.address}/right/epoch_1.pth'
        assert training_settings(address) == dict(UNIT_PIXELS, img_size=32)
        open_checkpoint(address)
        assert len(server.requests) == 1  # the file is cached
    with rejects('s3://, which is not read safely'):
        training_settings('s3://bucket/x.pth')
    for source in (None, {}, 'none.pth', 'timm://vit_base_patch16_224', 'hf://org/name'):
        assert training_settings(source) == {}


def test_literals_read_every_config_that_mmengine_writes():
    """Keys that are not identifiers, usual in ``custom_keys``, are written as
    ``dict({'.conv1': ...})``.
    """
    settings = dict(
        optim_wrapper=dict(
            paramwise_cfg=dict(custom_keys={'.conv1': dict(lr_mult=2.0), 'a': dict(b=None)})
        ),
        steps=[dict(size=(1, 2)), {'x y': {'z.': True}}],
        name='text',
        number=-1.5,
    )
    assert literals(Config(settings).pretty_text) == settings


OURS = dict(type='vit_plugin.VisionTransformer', arch='Ti/16', img_size=32)


@pytest.mark.parametrize(
    ('backbone', 'expected'),
    [
        (OURS, dict(arch='Ti/16')),
        (
            dict(OURS, patch_embed=dict(type='TimmEmbed', model_name='resnet26d', pretrained=True)),
            dict(arch='Ti/16', patch_embed=dict(type='TimmEmbed', model_name='resnet26d')),
        ),
        (dict(type='ResNet', depth=50), {}),
        (dict(OURS, patch_embed=dict(type='local.Code')), 'patch_embed.type'),
        (dict(OURS, pos_embed=dict(type='BaseDataset', ann_file='x.pkl')), 'pos_embed.type'),
    ],
)
def test_the_backbone_is_validated(tmp_path, backbone, expected):
    pytest.importorskip('mmpretrain')
    path = tmp_path / 'epoch_1.pth'
    torch.save(dict(meta=dict(cfg=f'model = dict(backbone={backbone!r})')), path)
    assert training_settings(path) == ({} if backbone['type'] == 'ResNet' else dict(img_size=32))
    if isinstance(expected, str):
        with rejects(f'names at model.backbone.{expected} .* not in the table'):
            saved_backbone(path)
    else:
        assert saved_backbone(path) == expected


def test_only_token_pooling_is_returned_as_neck(tmp_path):
    path, pooling = tmp_path / 'epoch_1.pth', dict(type='vit_plugin.TokenPooling', mode='cls_avg')
    for neck, expected in ((pooling, pooling), (dict(type='GlobalAveragePooling'), {})):
        text = Config(dict(model=dict(neck=neck))).pretty_text
        torch.save(dict(meta=dict(cfg=text), state_dict={}), path)
        assert saved_neck(path) == expected


def test_a_saved_backbone_without_the_name_of_a_type_is_not_wrapped():
    content = dict(meta=dict(cfg="model = dict(backbone=dict(type=['a']))"), state_dict={})
    assert wrapped_model('', Checkpoint('x.pth', content)) == {}
