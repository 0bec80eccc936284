"""A test pipeline in the formats of timm and transformers, or an error if it has none there."""

import json

import pytest
from mmengine.dataset import Compose
from rejection import rejects
from torch import nn

from vit_plugin.data import LoadImage
from vit_plugin.deploy.hub.preprocessing import processor_of, timm_data_config
from vit_plugin.inference.load import load
from vit_plugin.zoo import data_config as zoo

EDGE = dict(type='ResizeEdge', scale=36, edge='short', interpolation='bicubic', backend='pillow')
PIPELINES = {
    'resize': [dict(type='Resize', scale=(32, 32), interpolation='bicubic')],
    'edge and crop': [EDGE, dict(type='CenterCrop', crop_size=32)],
    'resize and crop': [dict(type='Resize', scale=(40, 40)), dict(type='CenterCrop', crop_size=32)],
}


@pytest.mark.parametrize('name', PIPELINES)
def test_data_config_survives_transformers_format(saved, tmp_path, monkeypatch, name):
    written = timm_data_config(load(saved(PIPELINES[name]), device='cpu'))
    (tmp_path / 'preprocessor_config.json').write_text(json.dumps(processor_of(written)))
    monkeypatch.setattr('huggingface_hub.hf_hub_download', lambda name, file: str(tmp_path / file))
    read = zoo.data_config_of('B/16', 'hf://org/model')
    assert written.pop('input_size') == [3, 32, 32]
    for key, value in read.items():
        assert written[key] == (value if isinstance(value, str) else pytest.approx(value)), key


@pytest.mark.parametrize(
    ('steps', 'words'),
    [
        ([dict(type='Resize', scale=(40, 32), keep_ratio=True)], 'is not a resize'),
        ([EDGE], 'is not a resize'),
        # The crop takes another part of the height than of the width.
        (
            [dict(type='Resize', scale=(40, 48)), dict(type='CenterCrop', crop_size=32)],
            'is not a resize',
        ),
        ([dict(type='Resize', scale=(32, 32), interpolation='area')], 'is not a resize'),
        (
            [dict(type='Pad', size=(32, 32))],
            'its pipeline has Pad, which another library cannot do to an image; leave it out, or',
        ),
    ],
)
def test_pipelines_that_timm_cannot_express_raise(saved, steps, words):
    trained = load(saved(steps), device='cpu')
    with rejects(words):
        timm_data_config(trained)


def test_readers_of_a_window_raise(saved):
    trained = load(saved(), device='cpu')
    trained.pixels.custom_reader = Compose([LoadImage(window=(0, 4095))])
    with rejects('its LoadImage has options with which other libraries read no images'):
        timm_data_config(trained)


def test_backbones_of_frameworks_raise(saved):
    trained = load(saved(), device='cpu')
    trained.model.backbone = nn.Identity()
    for _ in range(2):
        with rejects(r'its backbone \(Identity\) is not one of vit_plugin'):
            timm_data_config(trained)
        trained.model.backbone.in_channels = 320  # those of MobileNetV2's last block
    del trained.model.backbone
    with rejects('it has no backbone'):
        timm_data_config(trained)


def test_bgr_models_raise(saved):
    trained = load(saved(), device='cpu')
    trained.model.data_preprocessor.to_rgb = False
    with rejects('BGR'):
        timm_data_config(trained)
