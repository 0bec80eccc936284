import json

import pytest
from rejection import rejects

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
def test_the_processor_says_what_the_pipeline_does(saved, tmp_path, monkeypatch, name):
    """Through transformers' file and back."""
    found = timm_data_config(load(saved(PIPELINES[name]), device='cpu'))
    (tmp_path / 'preprocessor_config.json').write_text(json.dumps(processor_of(found)))
    monkeypatch.setattr('huggingface_hub.hf_hub_download', lambda name, file: str(tmp_path / file))
    again = zoo.data_config_of('B/16', 'hf://org/model')
    assert found.pop('input_size') == [3, 32, 32]
    for key, value in again.items():
        assert found[key] == (value if isinstance(value, str) else pytest.approx(value)), key


@pytest.mark.parametrize(
    ('steps', 'words'),
    [
        ([dict(type='Resize', scale=(40, 32), keep_ratio=True)], 'is not a resize'),
        ([EDGE], 'is not a resize'),
        ([dict(type='Resize', scale=(32, 32), interpolation='area')], 'is not a resize'),
        ([dict(type='Pad', size=(32, 32))], 'its pipeline has Pad'),
    ],
)
def test_a_pipeline_without_such_a_form(saved, steps, words):
    trained = load(saved(steps), device='cpu')
    with rejects(words):
        timm_data_config(trained)


def test_other_libraries_have_no_bgr(saved):
    trained = load(saved(), device='cpu')
    trained.model.data_preprocessor.to_rgb = False
    with rejects('BGR'):
        timm_data_config(trained)
