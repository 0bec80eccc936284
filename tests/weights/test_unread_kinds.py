"""Unsupported models of transformers raise a sentence that says why."""

import json

import pytest
import torch
from rejection import rejects
from safetensors.torch import save_file

from vit_plugin.inference.load import load


@pytest.mark.parametrize(
    ('config', 'words'),
    [
        (dict(model_type='upernet'), "has model_type='upernet', and it predicts masks with a"),
        (dict(model_type='vitdet'), 'TransformersBackbone'),
        (dict(model_type='yolos'), 'it is a detector with an encoder'),
        (dict(model_type='swin', architectures=['SwinForX']), 'the encoder and the image class'),
        (dict(model_type='beit', architectures=['BeitForX']), 'BeitModel, BeitForImageClass'),
        (dict(model_type='sam_vision_model'), 'answers prompts'),
        (dict(model_type='vit', architectures=['ViTForMaskedImageModeling']), 'ViTModel, ViTForIm'),
        (dict(model_type='mine', auto_map={}), 'names code of its own .auto_map., which is never'),
        (dict(model_type='gpt2'), 'no model here reads it; give an image encoder'),
    ],
)
def test_unsupported_models_raise_with_a_reason(tmp_path, config, words):
    save_file(dict(a=torch.zeros(1)), tmp_path / 'model.safetensors')
    (tmp_path / 'config.json').write_text(json.dumps(config))
    with rejects(words):
        load(tmp_path, device='cpu')
