"""Folders of Hugging Face's hub with incomplete or damaged configs."""

import json

import pytest
import torch
from rejection import rejects
from safetensors.torch import save_file

from vit_plugin.inference.load import load
from vit_plugin.weights.opening import open_checkpoint
from vit_plugin.weights.published import Published


@pytest.mark.parametrize('content', ['{}', '[]', '{"model_type": "vit",'])
def test_configs_without_a_model_raise(content, tmp_path):
    save_file(dict(a=torch.zeros(1)), tmp_path / 'model.safetensors')
    (tmp_path / 'config.json').write_text(content)
    with rejects('config.json. names no model, neither by model_type'):
        load(tmp_path, device='cpu')


def test_configs_without_weights_raise(tmp_path):
    (tmp_path / 'config.json').write_text('{"model_type": "vit"}')
    with rejects('has the config of a model and none of model.safetensors'):
        load(tmp_path, device='cpu')


@pytest.mark.parametrize('labels', [['a', 'b'], {'0': 'a', 'x': 'b'}, {'0': 1}])
def test_invalid_names_of_classes_raise(labels, tmp_path):
    save_file(dict(a=torch.zeros(1)), tmp_path / 'model.safetensors')
    (tmp_path / 'config.json').write_text(json.dumps(dict(id2label=labels)))
    with rejects('id2label=.*, where names by numbers are expected'):
        _ = Published(open_checkpoint(tmp_path)).names
